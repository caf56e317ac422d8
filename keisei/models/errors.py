"""The errors that users can cause with models, weights and devices."""

from keisei.errors import KeiseiError


class ModelError(KeiseiError, ValueError):
    """A model type, a choice or a size that does not exist; the message lists what does."""


class WeightsError(KeiseiError, ValueError):
    """Weights that do not fit the model; the message names the tensor and both shapes."""


class DeviceError(KeiseiError, ValueError):
    """A device or precision that this machine does not have; the message says why."""
