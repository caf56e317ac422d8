"""``keisei export``: a network as a file that needs no torch."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """File formats."""

    ONNX = "onnx"


def export(
    model: Annotated[Path, typer.Argument(help="A run, by path or name, or a checkpoint.")],
    file_format: Annotated[
        Format, typer.Option("--format", help="File format; only onnx so far.")
    ] = (Format.ONNX),
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default="RUN@STEP.onnx here", help="File to write."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Export a trained network as an ONNX file, which plays without torch."""
    from keisei.commands.tables import progress_bar
    from keisei.errors import KeiseiError
    from keisei.network.onnx.onnx_model import SUFFIX, import_onnx
    from keisei.system import write_atomically

    import_onnx()  # fails before torch is imported, which takes seconds
    if output is not None:
        if output.suffix.lower() != SUFFIX:
            raise KeiseiError(
                f"{output}: an ONNX file must end in {SUFFIX}, by which players recognise it"
            )
        _require_free(output, force)
    with progress_bar() as progress:
        progress.add_task("exporting", total=None)

        from keisei.network.loading import read_network
        from keisei.network.model_factory import resolve

        network = read_network(model)
        export_onnx = resolve("keisei.network.onnx.onnx_export:export_onnx", "keisei export")
        target = Path(f"{network.name}{SUFFIX}") if output is None else output
        _require_free(target, force)
        data = export_onnx(network)
        write_atomically(target, data)
    typer.echo(f"{network.name} -> {target} ({len(data) / 1e6:.1f} MB)")


def _require_free(path: Path, force: bool) -> None:
    from keisei.errors import KeiseiError

    if path.exists() and not force:
        raise KeiseiError(f"{path} already exists; --force replaces it")
