"""A realistic operating day of an airport (HGH, 9 SEP 2026) as SIS messages, and what must become of each of them.

The expected outcomes are booked while the messages are written, from the rules of docs/decisions.md alone. Nothing here
uses the engine, the decoder or a database, so the manifest can be held against them.
"""

from __future__ import annotations

from msgx_driver.generate.day import MAX_FLIGHTS, MIN_FLIGHTS, Day, Message, generate_day, write_day

__all__ = ["MAX_FLIGHTS", "MIN_FLIGHTS", "Day", "Message", "generate_day", "write_day"]
