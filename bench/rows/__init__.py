"""The rows of the benchmark, one module per subject. Importing this package registers all of them, in table order."""

from bench.rows import dynamic, snapshot, projection, history, held_snapshot, memory, service  # noqa: F401, I001
