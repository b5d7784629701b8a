"""The benchmark of msgx: `make bench`, or `python -m bench --help`; what it measures stands in docs/performance.md."""
