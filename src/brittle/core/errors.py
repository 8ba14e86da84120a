"""The one exception that is meant for the user."""

from __future__ import annotations


class BadInput(Exception):
    """Something the user gave us is wrong. Its text is the one line they read; the exit code is 2."""
