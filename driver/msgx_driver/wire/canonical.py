"""The one spelling of a JSON value: equal values give equal bytes (contract §5, FS-5.5-1)."""

from __future__ import annotations

import json

# NaN and infinity are no JSON: they raise ValueError instead of being written.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def canonical_json(value: object) -> str:
    """Write ``value`` compact, keys in code-point order at every level, text unescaped, numbers as given.

    ``value`` is made of dict (keys are str), list, str, int, float, bool and None. The result is meant
    for UTF-8. Raises TypeError for any other type and ValueError for NaN, infinity or a value that
    contains itself.
    """
    return _ENCODER.encode(value)
