"""The loops of the driver: each retries what lies outside the commit."""
