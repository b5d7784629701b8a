#!/bin/sh
# Checks what the make targets need from the machine, before anything runs.
#
#   prerequisites.sh python   print the Python interpreter to use
#   prerequisites.sh setup    Python 3.11 or newer that can make virtual environments
#   prerequisites.sh service  also Java 17 and Maven for Apache Kafka, and MariaDB
#   prerequisites.sh test     also PostgreSQL 15 or newer with pgTAP and plpgsql_check (unless MSGX_TEST_PG_DSN
#                             names a server that has them), and pg_prove; Java 17 and Maven for Apache Kafka,
#                             also beside a broker in MSGX_TEST_KAFKA: some tests stop theirs; MariaDB, for the same
#                             reason also beside a server in MSGX_TEST_MARIADB
#
# As root on Debian and Ubuntu it installs what is missing; else it names everything that is missing, with the
# one command that installs it, and exits with 3.
#
# MSGX_PREREQ_ROOT: look for files below this folder instead of / (for tests of this script).

set -u

root=${MSGX_PREREQ_ROOT:-}
what=${1:-}

# Behind an activated virtual environment or a version manager's shim: the interpreter itself.
find_python() {
    for python in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
        [ -n "$python" ] || continue
        "$python" -c 'import sys
if sys.version_info < (3, 11): sys.exit(1)
print(getattr(sys, "_base_executable", None) or sys.executable)' 2>/dev/null && return 0
    done
    return 1
}

# The newest major version whose folder has the server and both extensions; empty when there is none.
find_postgres() {
    best=0
    for bin in "$root"/usr/lib/postgresql/*/bin; do
        version=$(basename "$(dirname "$bin")")
        share=$root/usr/share/postgresql/$version/extension
        case $version in *[!0-9]*) continue ;; esac
        [ "$version" -ge 15 ] && [ -x "$bin/postgres" ] && [ -x "$bin/initdb" ] || continue
        [ -f "$share/pgtap.control" ] && [ -f "$share/plpgsql_check.control" ] || continue
        [ "$version" -gt "$best" ] && best=$version
    done
    [ "$best" -gt 0 ] && echo "$best"
}

# The version this Debian or Ubuntu release brings, 15 where nobody can be asked.
release_postgres() {
    version=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9][0-9]*\)$/\1/p' | head -n 1)
    [ "${version:-0}" -ge 15 ] || version=15
    echo "$version"
}

# Apache Kafka runs on it.
find_java() {
    version=$(java -version 2>&1) || return 1
    version=$(echo "$version" | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    [ "${version:-0}" -ge 17 ]
}

# A server's program need not be in PATH.
find_program() {
    for folder in /usr/sbin /usr/local/sbin /usr/bin /usr/libexec; do
        [ -x "$root$folder/$1" ] && return 0
    done
    [ -z "$root" ] && command -v "$1" >/dev/null 2>&1
}

# The release's own Java, or 17 where that is older.
java_package() {
    version=$(apt-cache depends default-jre-headless 2>/dev/null | sed -n 's/.*Depends: openjdk-\([0-9]*\)-jre-headless$/\1/p' | head -n 1)
    if [ "${version:-17}" -ge 17 ]; then echo default-jre-headless; else echo openjdk-17-jre-headless; fi
}

missing=
packages=
lack() { # description, package
    missing="$missing
  - $1"
    packages="$packages $2"
}

check() {
    missing=
    packages=
    if python=$(find_python); then
        # Debian splits both out of its own python3.
        if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
            lack "Python's venv and ensurepip modules for $python" "$("$python" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')"
        fi
    else
        lack "Python 3.11 or newer (tried \$PYTHON, python3, python3.14 to python3.11; python3 is $(python3 --version 2>/dev/null || echo absent))" "python3 python3-venv"
    fi
    case $what in service | test) check_servers ;; esac
    [ "$what" = test ] || return 0
    if [ -n "${MSGX_TEST_PG_DSN:-}" ]; then
        command -v psql >/dev/null 2>&1 || lack "psql, for the server in MSGX_TEST_PG_DSN" postgresql-client
    elif [ -z "$(find_postgres)" ]; then
        version=$(release_postgres)
        lack "PostgreSQL 15 or newer with the extensions pgtap and plpgsql_check in one version" "postgresql-$version postgresql-$version-pgtap postgresql-$version-plpgsql-check"
    fi
    if [ -n "$root" ]; then
        [ -x "$root/usr/bin/pg_prove" ]
    else
        command -v pg_prove >/dev/null 2>&1
    fi || lack "pg_prove, which runs the pgTAP tests" libtap-parser-sourcehandler-pgtap-perl
}

check_servers() {
    find_java || lack "Java 17 or newer, for Apache Kafka" "$(java_package)"
    command -v mvn >/dev/null 2>&1 || lack "Maven, which brings Apache Kafka" maven
    { find_program mariadbd && find_program mariadb-install-db; } || lack "MariaDB's server (mariadbd and mariadb-install-db)" mariadb-server
}

install_packages() {
    # Debian's postgresql would start a server of its own on port 5432; nothing here needs that one.
    policy=/usr/sbin/policy-rc.d
    made=
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" && made=yes
    fi
    trap '[ -z "$made" ] || rm -f "$policy"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    echo "installing$packages" >&2
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages >&2 || {
        apt-get update -q >&2
        # The first list may be too old to know the release's version.
        check
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages >&2
    } || echo "apt-get failed" >&2
    [ -z "$made" ] || rm -f "$policy"
    trap - EXIT INT TERM
}

case $what in
python)
    find_python || {
        echo "msgx: Python 3.11 or newer is missing; see: sh scripts/prerequisites.sh setup" >&2
        exit 3
    }
    exit 0
    ;;
setup | service | test) ;;
*)
    echo "usage: sh scripts/prerequisites.sh python|setup|service|test" >&2
    exit 2
    ;;
esac

check
if [ -n "$missing" ] && [ -z "$root" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    install_packages
    check
fi
if [ -n "$missing" ]; then
    {
        case $what in service) name="demo-service" ;; *) name=$what ;; esac
        echo "msgx: make $name needs what this machine does not have:$missing"
        if command -v apt-get >/dev/null 2>&1 || [ -n "$root" ]; then
            echo "Install it with:"
            echo "  sudo apt-get update && sudo apt-get install -y$packages"
        else
            echo "Install it with your system's package manager (on Debian: apt-get install -y$packages)."
        fi
    } >&2
    exit 3
fi
