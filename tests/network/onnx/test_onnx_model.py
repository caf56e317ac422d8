"""Files that are none of ours, damaged or hostile; and playing without torch."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import keisei
from keisei.checkpoints.store import save_checkpoint
from keisei.errors import KeiseiError
from keisei.network.onnx.onnx_export import export_onnx
from keisei.network.onnx.onnx_model import (
    OnnxModel,
    choose_providers,
    load_onnx,
)
from keisei.shogi.features import feature_spec
from tests.network.onnx.signatures import signed
from tests.network.onnx.stored import stored_network

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "mine.onnx"
    path.write_bytes(export_onnx(stored_network()))
    return path


def set_fact(proto: Any, name: str, value: str) -> None:
    (entry,) = (entry for entry in proto.metadata_props if entry.key == f"keisei.{name}")
    entry.value = value


def loop_for_ever(proto: Any) -> None:
    """Compute something useless 2**62 times."""
    kinds = TensorProto
    body = helper.make_graph(
        [helper.make_node("Identity", ["go_on"], ["still"])],
        "body",
        [
            helper.make_tensor_value_info("number", kinds.INT64, []),
            helper.make_tensor_value_info("go_on", kinds.BOOL, []),
        ],
        [helper.make_tensor_value_info("still", kinds.BOOL, [])],
    )
    proto.graph.initializer.append(helper.make_tensor("times", kinds.INT64, [], [1 << 62]))
    proto.graph.initializer.append(helper.make_tensor("truth", kinds.BOOL, [], [True]))
    proto.graph.node.insert(0, helper.make_node("Loop", ["times", "truth"], [], body=body))


def define_an_operator(proto: Any) -> None:
    proto.functions.append(onnx.FunctionProto(name="Own", domain="own"))


def add_many_tensors(proto: Any) -> None:
    empty = helper.make_tensor("empty", TensorProto.FLOAT, [0], [])
    proto.graph.initializer.extend([empty] * 300_000)


def drop_facts(proto: Any) -> None:
    del proto.metadata_props[:]


def drop_the_run(proto: Any) -> None:
    kept = [entry for entry in proto.metadata_props if entry.key != "keisei.run"]
    del proto.metadata_props[:]
    proto.metadata_props.extend(kept)


def rename_a_plane(proto: Any) -> None:
    (entry,) = (entry for entry in proto.metadata_props if entry.key == "keisei.plane_names")
    entry.value = entry.value.replace("own P", "own Q")


def use_a_foreign_operator(proto: Any) -> None:
    proto.graph.node[0].domain = "com.example"
    proto.opset_import.append(helper.make_opsetid("com.example", 1))


def drop_an_output(proto: Any) -> None:
    del proto.graph.output[1]


def swap_the_outputs(proto: Any) -> None:
    names = {"logits": "value", "value": "logits"}
    for node in proto.graph.node:
        for place, name in enumerate(node.output):
            node.output[place] = names.get(name, name)
    for output in proto.graph.output:
        output.name = names[output.name]


def read_other_planes(proto: Any) -> None:
    set_fact(proto, "features", "core46+check")
    names = ", ".join(f'"{name}"' for name in feature_spec("core46+check").plane_names)
    set_fact(proto, "plane_names", f"[{names}]")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (drop_facts, "not a network of Keisei: keisei export writes such files"),
        (
            lambda proto: set_fact(proto, "format_version", "2"),
            "version '2', but this Keisei reads",
        ),
        (drop_the_run, "metadata: keisei.run: Field required"),
        (
            lambda proto: set_fact(proto, "timestep", "many"),
            "metadata: keisei.timestep: .*integer",
        ),
        (
            lambda proto: set_fact(proto, "temperature", "-1"),
            "metadata: keisei.temperature",
        ),
        (
            lambda proto: set_fact(proto, "temperature", "nan"),
            "metadata: keisei.temperature",
        ),
        (lambda proto: set_fact(proto, "mate_plies", "2"), "metadata: keisei.mate_plies"),
        (lambda proto: set_fact(proto, "plane_names", "["), "metadata: keisei.plane_names"),
        (lambda proto: set_fact(proto, "run", "a\x1b[31m"), "metadata: keisei.run"),
        (lambda proto: set_fact(proto, "features", "core99"), "planes are unknown here"),
        (rename_a_plane, "the planes of core46 differ from those of this Keisei"),
        (use_a_foreign_operator, "operator com.example.* is not of the ONNX standard"),
        (loop_for_ever, "its operator Loop is none that keisei export writes"),
        (define_an_operator, "it defines operators of its own"),
        (add_many_tensors, "more than 100,000 operators and tensors"),
        (
            lambda proto: set_fact(proto, "plane_names", "[" * 100_000),
            "metadata: keisei.plane_names: .*nested too deeply",
        ),
        (drop_an_output, "a trial prediction failed: .*value"),
        (swap_the_outputs, r"it returns float32\[2\] and float32\[2, 3\]"),
        (read_other_planes, "a trial prediction failed: .*46"),
    ],
)
def test_files_that_are_not_what_they_should_be(
    sound: Path, tmp_path: Path, damage: Callable[[Any], None], message: str
) -> None:
    proto = onnx.load(sound)
    damage(proto)
    path = tmp_path / "bad.onnx"
    path.write_bytes(signed(proto).SerializeToString())
    with pytest.raises(KeiseiError, match=rf"(?s)bad\.onnx: .*{message}"):
        load_onnx(path, threads=1)


def test_a_graph_that_was_changed_is_noticed(sound: Path, tmp_path: Path) -> None:
    proto = onnx.load(sound)
    weights = bytearray(proto.graph.initializer[0].raw_data)
    weights[0] ^= 1
    proto.graph.initializer[0].raw_data = bytes(weights)
    path = tmp_path / "bad.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(KeiseiError, match="damaged: the SHA-256 of its graph differs"):
        load_onnx(path)
    kept = [entry for entry in proto.metadata_props if entry.key != "keisei.graph_sha256"]
    del proto.metadata_props[:]
    proto.metadata_props.extend(kept)
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(KeiseiError, match="no digest of its graph: export it again"):
        load_onnx(path)


def test_errors_of_onnxruntime_are_our_own(sound: Path) -> None:
    """Before, a file that failed for some positions only ended a match with a traceback."""
    model = load_onnx(sound, threads=1)
    assert isinstance(model, OnnxModel)
    with pytest.raises(KeiseiError, match=r"mine\.onnx: onnxruntime failed: .*"):
        model._run(np.zeros((2, 3, 9, 9), dtype=np.float32), np.zeros((2, 3), dtype=np.uint16))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"not a network at all\n" * 100,
        lambda data: data[: len(data) // 2],
        lambda data: b"\x00" + data,
    ],
    ids=["empty", "text", "half", "shifted"],
)
def test_garbage(sound: Path, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(damage(sound.read_bytes()))
    with pytest.raises(KeiseiError, match=r"not an ONNX file, or damaged|not a network of Keisei"):
        load_onnx(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(KeiseiError, match=r"cannot read .*none\.onnx"):
        load_onnx(tmp_path / "none.onnx")


def outside(tensor: Any, location: Path) -> None:
    """Let a tensor's data come from another file."""
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=str(location))


def test_weights_outside_of_the_file_are_refused(sound: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    proto = onnx.load(sound)
    tensor = proto.graph.initializer[0]
    secret.write_bytes(tensor.raw_data)
    outside(tensor, secret)
    path = tmp_path / "curious.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(KeiseiError, match="its weights are in another file"):
        load_onnx(path)


def test_they_are_found_wherever_they_hide(sound: Path, tmp_path: Path) -> None:
    hidden = numpy_helper.from_array(np.zeros(3, dtype=np.float32), "hidden")
    outside(hidden, tmp_path / "secret")
    constant = helper.make_node("Constant", [], ["unused"], value=hidden)
    branch = helper.make_graph(
        [constant], "branch", [], [helper.make_tensor_value_info("unused", TensorProto.FLOAT, [3])]
    )
    truth = helper.make_tensor("truth", TensorProto.BOOL, [], [True])
    proto = onnx.load(sound)
    proto.graph.initializer.append(truth)
    proto.graph.node.append(
        helper.make_node("If", ["truth"], ["taken"], then_branch=branch, else_branch=branch)
    )
    path = tmp_path / "curious.onnx"
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(KeiseiError, match="its weights are in another file"):
        load_onnx(path)


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_what_is_missing_is_named(
    sound: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(KeiseiError, match=rf'the package {package}: .* "keisei\[onnx\]"'):
        load_onnx(sound)


@pytest.mark.parametrize(
    ("device", "available", "expected"),
    [
        ("cpu", [CUDA, CPU], [CPU]),
        ("auto", [CPU], [CPU]),
        ("auto", [CUDA, CPU], [(CUDA, {"device_id": 0}), CPU]),
        ("cuda", [CUDA, CPU], [(CUDA, {"device_id": 0}), CPU]),
        ("cuda:1", [CUDA, CPU], [(CUDA, {"device_id": 1}), CPU]),
    ],
)
def test_devices(device: str, available: list[str], expected: list[object]) -> None:
    assert choose_providers(device, available) == expected


@pytest.mark.parametrize("device", ["mps", "toaster", "cuda:x", "cpu:1", "cuda"])
def test_devices_that_are_not_there(device: str) -> None:
    with pytest.raises(KeiseiError, match=f"device {device}: "):
        choose_providers(device, [CPU])


def test_a_gpu_that_cannot_be_used(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package for GPUs is there, but not what it needs: it falls back to the CPU."""
    onnxruntime = pytest.importorskip("onnxruntime")
    if CUDA in onnxruntime.get_available_providers():
        pytest.skip("there is a GPU")
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, CPU])
    with pytest.raises(KeiseiError, match="device cuda: onnxruntime cannot use the GPU"):
        load_onnx(sound, threads=1, device="cuda")
    assert load_onnx(sound, threads=1, device="auto").name == "mine@192.onnx"


WITHOUT_TORCH = "import sys; sys.modules['torch'] = None\n"


def run_without_torch(program: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH + program, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        stdin=subprocess.DEVNULL,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(keisei.__file__).parents[1])},
    )


MAIN = "from keisei.cli import main; main()"


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (
            "match mine.onnx:search=2 mine.onnx --games 2 --ply-limit 8 --threads 1",
            "mine@192.onnx:search=2 against mine@192.onnx: 2 games",
        ),
        (
            "annotate game.usi --model mine.onnx --threads 1 --output game.csa --plot game.svg",
            "written: game.csa",
        ),
        ("play mine.onnx --terminal --color white", "mine@192.onnx plays "),
    ],
    ids=lambda text: text.split()[0],
)
def test_commands_that_need_no_torch(
    sound: Path, tmp_path: Path, arguments: str, answer: str
) -> None:
    shutil.copy(sound, tmp_path)
    (tmp_path / "game.usi").write_text("startpos moves 7g7f 3c3d\n")
    result = run_without_torch(MAIN, *arguments.split(), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert answer in result.stdout


def test_a_run_needs_torch_and_says_so(tmp_path: Path) -> None:
    network = stored_network()
    save_checkpoint(
        tmp_path / "run" / "checkpoints",
        timestep=192,
        update=1,
        state={"model": network.weights},
        config_json=network.config.model_dump_json(),
        keep=1,
    )
    result = run_without_torch(MAIN, "match", "run", "greedy", cwd=tmp_path)
    assert result.returncode == 2
    message = " ".join(result.stderr.split())
    assert "needs torch" in message
    assert 'python -m pip install "keisei[torch]"; an ONNX file needs no torch' in message
    assert "skipping" not in message, "the checkpoint is good"
