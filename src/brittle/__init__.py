"""Why gradient-trained neural networks are brittle, and what fixes it."""

from brittle.core import machine

machine.fix()
