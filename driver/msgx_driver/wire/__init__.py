"""The wire: SIS XML as it comes from the mailbox, and canonical JSON as it leaves (contract §1, §2, §5)."""

from msgx_driver.wire.canonical import canonical_json
from msgx_driver.wire.decode import DecodeError, decode_message
from msgx_driver.wire.fields import FieldCatalogue, FieldKind, FieldSpec

__all__ = ["DecodeError", "FieldCatalogue", "FieldKind", "FieldSpec", "canonical_json", "decode_message"]
