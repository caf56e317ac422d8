"""What an ONNX file of Keisei says about itself: its metadata, written and read in one place.

Knows nothing of torch, and nothing of ONNX but that its metadata are pairs of text.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from keisei.config_schema import MatePlies, Text
from keisei.constants import MAX_PLY_LIMIT
from keisei.errors import KeiseiError
from keisei.shogi.features import FeatureSpec, feature_spec

FORMAT_VERSION: Final = 1
"""Of inputs, outputs and metadata. A reader refuses versions that it does not know."""

PREFIX: Final = "keisei."
"""In front of each name among the metadata, which other programs may write to as well."""

PLANES: Final = "planes"
"""Input ``[batch, planes, 9, 9]`` float32: what `FeatureSpec.encode` writes."""

LEGAL: Final = "legal"
"""Input ``[batch, moves]`` int64: legal actions; rows are filled up with any action."""

LOGITS: Final = "logits"
"""Output ``[batch, moves]`` float32, of the actions in `LEGAL`."""

VALUE: Final = "value"
"""Output ``[batch]`` float32: from -1, lost for the mover, to 1, won."""


class OnnxError(KeiseiError):
    """A network that cannot be written as ONNX, or a file that holds none of Keisei's."""


def _from_json(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value


class OnnxFacts(BaseModel):
    """The metadata of a file, each under its name with `PREFIX` in front."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    format_version: int
    keisei_version: Text
    run: Text
    """Name of the run that the network comes from."""

    timestep: Annotated[int, Field(ge=0)]
    """Plies that it had learned from."""

    weights_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Of the file with the weights in its checkpoint."""

    features: Text
    """Name of the feature set that it reads."""

    plane_names: Annotated[tuple[str, ...], BeforeValidator(_from_json)] = Field(repr=False)
    """The planes one by one, as JSON: a plug-in's feature can change without its name."""

    temperature: Annotated[float, Field(ge=0.0)]
    """Of its moves where its run measures it."""

    mate_plies: MatePlies
    """Mates of up to so many plies are played by rule where its run measures it."""

    ply_limit: Annotated[int, Field(gt=0, le=MAX_PLY_LIMIT)]
    """The ply at which games are drawn where its run measures it; it sees how far that is."""

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str]) -> Self:
        """Read the metadata of a file; `OnnxError` says what is wrong with them."""
        named = {
            name.removeprefix(PREFIX): text
            for name, text in metadata.items()
            if name.startswith(PREFIX)
        }
        if "format_version" not in named:
            raise OnnxError("it is no network of Keisei: keisei export writes such files")
        if named["format_version"] != str(FORMAT_VERSION):
            raise OnnxError(
                f"its format is version {named['format_version']!r}, and only {FORMAT_VERSION} "
                "is known here: is it of a newer Keisei?"
            )
        try:
            return cls.model_validate(named)
        except ValidationError as error:
            problem = error.errors()[0]
            name = PREFIX + ".".join(map(str, problem["loc"]))
            raise OnnxError(f"its metadata are damaged: {name}: {problem['msg']}") from None

    def as_metadata(self) -> dict[str, str]:
        """What `from_metadata` reads."""
        return {
            PREFIX + name: value if isinstance(value, str) else json.dumps(value)
            for name, value in self.model_dump(mode="json").items()
        }

    @property
    def spec(self) -> FeatureSpec:
        """The planes that the network reads; `OnnxError` if they are other planes here."""
        try:
            spec = feature_spec(self.features)
        except KeiseiError as error:
            raise OnnxError(f"it reads planes that are unknown here: {error}") from None
        if spec.plane_names != self.plane_names:
            raise OnnxError(f"the planes of {self.features} are others here than in the file")
        return spec
