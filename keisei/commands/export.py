"""``keisei export``: a network in a file that needs no torch."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """What can be written."""

    ONNX = "onnx"


def export(
    model: Annotated[Path, typer.Argument(help="A run, by path or name, or a checkpoint.")],
    file_format: Annotated[Format, typer.Option("--format", help="The only one so far.")] = (
        Format.ONNX
    ),
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default="RUN@STEP.onnx here", help="Where it is written."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a trained network as an ONNX file, which plays without torch."""
    from keisei.commands.tables import progress_bar
    from keisei.errors import KeiseiError
    from keisei.network.onnx.onnx_model import SUFFIX, import_onnx
    from keisei.system import write_atomically

    import_onnx()  # before torch, which takes seconds
    if output is not None:
        if output.suffix.lower() != SUFFIX:
            raise KeiseiError(f"{output}: an ONNX file ends in {SUFFIX}; players are told by that")
        _require_free(output, force)
    with progress_bar() as progress:
        progress.add_task("exporting", total=None)

        from keisei.network.loading import read_network

        network = read_network(model)

        from keisei.network.onnx.onnx_export import export_onnx

        target = Path(f"{network.name}{SUFFIX}") if output is None else output
        _require_free(target, force)
        data = export_onnx(network)
        write_atomically(target, data)
    typer.echo(f"{network.name} -> {target} ({len(data) / 1e6:.1f} MB)")


def _require_free(path: Path, force: bool) -> None:
    from keisei.errors import KeiseiError

    if path.exists() and not force:
        raise KeiseiError(f"{path} is there already; --force replaces it")
