"""What the decoder has to know about the tags of a flight record.

The tags are data: the rows of table ``flight_field`` and the columns of its target tables (contract §1).
The driver reads them from the database it writes to and hands them to the decoder, so a new field is a
migration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

FieldKind: TypeAlias = Literal["scalar", "collection", "object", "text"]


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One tag of a flight record.

    ``seq_tag`` is the sequence key of a collection (GTDT: ``GTNO``; DELY has none). ``max_items`` is the
    largest number of items of a collection, None = no limit. ``attrs`` are the keys that an item or an
    object may carry, the sequence key included, and ``TEXT`` where the element's own text has a column.
    Scalars and texts have none.
    """

    tag: str
    kind: FieldKind
    seq_tag: str | None = None
    max_items: int | None = None
    attrs: frozenset[str] = frozenset()


FieldCatalogue: TypeAlias = Mapping[str, FieldSpec]
