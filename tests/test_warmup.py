"""The warm-up compiles what training calls: nothing is compiled again later."""

import subprocess
import sys
from pathlib import Path

import numba
import pytest

COVERED = """
import sys
from pathlib import Path

from keisei.network.sparse import adam, forward, gradient
from keisei.warmup import kernels
from tests.tiny import tiny_trainer

for name, make_ready in kernels():
    if name.startswith("sparse network"):
        make_ready()
called = (
    forward.predict, gradient.add_gradient, adam.take_gradient, adam.sum_of_squares,
    adam.adam_step, adam.clear_gradient,
)
ready = [list(kernel.signatures) for kernel in called]
assert all(len(signatures) == 1 for signatures in ready), ready
settings = ("model.type=sparse", "model.accumulators=16", "device.threads=2", "ppo.ema_decay=0.9")
tiny_trainer(Path(sys.argv[1]), *settings).train_step()
assert [list(kernel.signatures) for kernel in called] == ready
"""


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing compiles with the JIT off")
def test_training_a_sparse_network_compiles_nothing_more(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", COVERED, str(tmp_path)], cwd=root, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
