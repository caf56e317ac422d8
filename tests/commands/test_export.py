"""``keisei export``: files that are written, and mistakes that are refused first."""

import sys
from pathlib import Path

import pytest

from keisei.commands.export import export
from keisei.errors import KeiseiError
from keisei.network.loading import load_network
from keisei.network.onnx.onnx_model import load_onnx
from tests.commands.invoke import invoke
from tests.tiny import tiny_trainer
from tests.tiny_runs import tiny_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_run(tmp_path_factory.mktemp("runs") / "mine", checkpoints=2)


@pytest.fixture(scope="module")
def sparse_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs") / "ours"
    trainer = tiny_trainer(
        directory, "model.type=sparse", "model.accumulators=16", "model.context=16"
    )
    trainer.train_step()
    trainer.save()
    return directory


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_is_written_under_its_name(run: Path, folder: Path) -> None:
    result = invoke(export, str(run))
    assert result.stdout == "mine@128 -> mine@128.onnx (0.1 MB)\n"
    assert [path.name for path in folder.iterdir()] == ["mine@128.onnx"]
    assert load_onnx(folder / "mine@128.onnx").facts.timestep == 128


def test_a_checkpoint_where_one_says(run: Path, folder: Path) -> None:
    checkpoint = run / "checkpoints" / "step-000000000064"
    result = invoke(export, str(checkpoint), "--format", "onnx", "--output", "old.onnx")
    assert result.exit_code == 0
    assert load_onnx(folder / "old.onnx").name == "mine@64.onnx"


def test_a_file_that_is_there_is_replaced_only_by_force(run: Path, folder: Path) -> None:
    target = folder / "mine@128.onnx"
    target.write_text("precious")
    for arguments in ([], ["--output", "mine@128.onnx"]):
        with pytest.raises(KeiseiError, match="already exists; --force replaces it"):
            invoke(export, str(run), *arguments)
    assert target.read_text() == "precious"
    assert invoke(export, str(run), "--force").exit_code == 0
    assert load_onnx(target).name == "mine@128.onnx"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody"], "there is no run or checkpoint nobody"),
        (["nobody", "--output", "mine.pt"], r"mine\.pt: .* must end in \.keisei or \.onnx"),
        (["nobody", "--output", "mine"], r"mine: .* must end in \.keisei or \.onnx"),
    ],
)
def test_what_is_refused(arguments: list[str], message: str, folder: Path) -> None:
    with pytest.raises(KeiseiError, match=message):
        invoke(export, *arguments)
    assert list(folder.iterdir()) == []


def test_a_place_that_cannot_be_written(run: Path) -> None:
    with pytest.raises(KeiseiError, match=r"cannot write .*no.such.place"):
        invoke(export, str(run), "--output", "no/such/place/mine.onnx")


def test_other_formats_do_not_exist(run: Path, folder: Path) -> None:
    result = invoke(export, str(run), "--format", "safetensors")
    assert result.exit_code == 2
    assert "'safetensors' is not one of 'keisei', 'onnx'" in result.output
    assert list(folder.iterdir()) == []


def test_without_the_extra(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(KeiseiError, match=r'onnxruntime: .* "keisei\[onnx\]"'):
        invoke(export, str(run))


def test_a_sparse_network_has_a_format_of_its_own(sparse_run: Path, folder: Path) -> None:
    result = invoke(export, str(sparse_run))
    assert result.stdout.startswith("ours@64 -> ours@64.keisei (")
    assert load_network(folder / "ours@64.keisei").name == "ours@64.keisei"


def test_the_suffix_of_the_file_names_the_format(sparse_run: Path, folder: Path) -> None:
    assert invoke(export, str(sparse_run), "--output", "ours.onnx").exit_code == 0
    assert load_onnx(folder / "ours.onnx").name == "ours@64.onnx"


def test_a_file_is_exported_again(sparse_run: Path, folder: Path) -> None:
    invoke(export, str(sparse_run), "--output", "ours.keisei")
    result = invoke(export, "ours.keisei", "--dtype", "float16")
    assert result.stdout.startswith("ours@64.keisei -> ours@64.keisei (")
    whole, half = (folder / name for name in ("ours.keisei", "ours@64.keisei"))
    assert half.stat().st_size < 0.6 * whole.stat().st_size


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "keisei", "--output", "a.onnx"], r"a file of the format keisei must end in"),
        (["--format", "onnx", "--dtype", "int8"], "--dtype is for the format keisei"),
    ],
)
def test_what_does_not_go_together(
    sparse_run: Path, folder: Path, arguments: list[str], message: str
) -> None:
    with pytest.raises(KeiseiError, match=message):
        invoke(export, str(sparse_run), *arguments)
    assert list(folder.iterdir()) == []


def test_a_tower_has_no_network_file(run: Path) -> None:
    with pytest.raises(KeiseiError, match="'resnet' is exported as onnx, not as keisei"):
        invoke(export, str(run), "--format", "keisei")
