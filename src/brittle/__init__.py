"""Why gradient-trained neural networks are brittle, and what fixes it."""

from brittle import machine

machine.fix()
