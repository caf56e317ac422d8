"""``keisei export``: a network as one file that plays without torch."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from keisei.constants import WeightType


class Format(StrEnum):
    """File formats; each has its name as suffix."""

    KEISEI = "keisei"
    ONNX = "onnx"


def export(
    model: Annotated[
        Path, typer.Argument(help="A run, by path or name, a checkpoint, or a .keisei file.")
    ],
    file_format: Annotated[
        Format | None,
        typer.Option(
            "--format",
            show_default="keisei; for towers onnx",
            help="keisei: to play with; onnx: for towers, and for other programs.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default="RUN@STEP.FORMAT here", help="File to write."),
    ] = None,
    dtype: Annotated[
        WeightType,
        typer.Option(
            help="Weights in the file: float16 takes half of the size, int8 a quarter (keisei)."
        ),
    ] = WeightType.FLOAT32,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Export a trained network as one file, which plays without torch and without the run."""
    from keisei.commands.tables import progress_bar
    from keisei.errors import KeiseiError
    from keisei.system import write_atomically

    if output is not None:
        if output.suffix.lower().removeprefix(".") not in list(Format):
            raise KeiseiError(
                f"{output}: a network's file must end in .keisei or .onnx, by which players "
                "recognise it"
            )
        _require_free(output, force)
    if file_format is Format.ONNX or (output is not None and output.suffix.lower() == ".onnx"):
        from keisei.network.onnx.onnx_model import import_onnx

        import_onnx()  # fails before torch is imported, which takes seconds
    with progress_bar() as progress:
        progress.add_task("exporting", total=None)

        from keisei.network.loading import read_network
        from keisei.network.model_factory import network_type, resolve

        network = read_network(model)
        kind = network.config.model.type
        exports = network_type(kind).exports
        chosen = file_format or (
            Format(next(iter(exports)))
            if output is None
            else Format(output.suffix.lower().removeprefix("."))
        )
        if chosen not in exports:
            raise KeiseiError(
                f"{network.name}: a network of type {kind!r} is exported as "
                f"{' or '.join(exports)}, not as {chosen}"
            )
        target = Path(f"{network.run}@{network.timestep}.{chosen}") if output is None else output
        if target.suffix.lower() != f".{chosen}":
            raise KeiseiError(f"{target}: a file of the format {chosen} must end in .{chosen}")
        _require_free(target, force)
        write = resolve(exports[chosen], f"exporting a network of type {kind!r}")
        if chosen is Format.KEISEI:
            data = write(network, dtype=dtype)
        elif dtype is not WeightType.FLOAT32:
            raise KeiseiError("--dtype is for the format keisei")
        else:
            data = write(network)
        write_atomically(target, data)
    typer.echo(f"{network.name} -> {target} ({len(data) / 1e6:.1f} MB)")


def _require_free(path: Path, force: bool) -> None:
    from keisei.errors import KeiseiError

    if path.exists() and not force:
        raise KeiseiError(f"{path} already exists; --force replaces it")
