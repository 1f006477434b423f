"""What RigL, SET and Sampled tell about their changes, and the densities of Erdos and Renyi."""

import copy
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="python3-torch is not installed")
from torch import nn  # noqa: E402

import tessera as ts  # noqa: E402
from tessera.torch import SET, RigL, SparseLinear, Static, erk  # noqa: E402


def places(layer):
    twin = layer.to_torch().to_dense() * 0
    rows = np.repeat(np.arange(len(layer.indptr) - 1), np.diff(layer.indptr.numpy()))
    height, width = layer.block
    flags = torch.zeros(twin.shape[0] // height, twin.shape[1] // width, dtype=torch.bool)
    flags[torch.from_numpy(rows), layer.indices.long()] = True
    return flags


@pytest.mark.parametrize("method", [RigL, SET])
@pytest.mark.parametrize("block", [1, 4])
def test_history_has_each_change_of_each_layer(method, block):
    torch.manual_seed(1)
    net = nn.Sequential(SparseLinear(16, 24, density=0.3, block=block), nn.ReLU(), SparseLinear(24, 8, density=0.4, block=block))
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    due = method(net, optimiser, every=2, end=8, fraction=0.5)
    ever = [places(net[0]), places(net[2])]
    for step in range(1, 9):
        net(torch.randn(5, 16)).square().sum().backward()
        before = [places(net[0]), places(net[2])]
        assert due.step() == (step % 2 == 0 and step < 8)
        if step % 2 == 0 and step < 8:
            now = [places(net[0]), places(net[2])]
            for change, name, new, old, all_of_it in zip(due.history[-2:], ("0", "2"), now, before, ever):
                all_of_it |= new
                assert (change.step, change.layer) == (step, name) and change.seconds > 0
                assert change.moved >= int((new & ~old).sum()) and change.density == pytest.approx(float(new.float().mean()))
                assert change.ever_active == pytest.approx(float(all_of_it.float().mean()))
    assert len(due.history) == 6 and due.history[-1].ever_active > due.history[0].density
    assert repr(due).startswith(f"{method.__name__}(2 layers, step 8, every 2 from 1 to 8, fraction 0.5, 6 changes)")
    assert Static(net, optimiser, end=4).history == []


def test_history_is_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    pyplot.switch_backend("Agg")
    net = SparseLinear(16, 24, density=0.3)
    due = SET(net, torch.optim.SGD(net.parameters(), lr=0.1), every=1, end=9)
    for _ in range(4):
        net(torch.randn(5, 16)).square().sum().backward()
        due.step()
    axes = due.plot([(1, 0.2), (4, 0.5)])
    labels = [line.get_label() for line in axes.lines]
    assert labels == [": density", ": ever active", "accuracy"] and list(axes.lines[1].get_xdata()) == [1, 2, 3, 4]
    assert due.plot(axes=axes) is axes
    pyplot.close("all")


def test_progress_is_a_bar_of_tqdm(monkeypatch, capsys):
    pytest.importorskip("tqdm", reason="python3-tqdm is not installed")
    net = SparseLinear(16, 24, density=0.3)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1)
    due = SET(net, optimiser, every=2, end=4, progress=True)
    for _ in range(5):
        net(torch.randn(5, 16)).square().sum().backward()
        due.step()
    drawn = capsys.readouterr().err
    assert "SET" in drawn and "4/4" in drawn and "moved=" in drawn and due._bar is None
    assert copy.deepcopy(SET(net, optimiser, end=4, progress=True))._bar is None
    resumed = SET(net, optimiser, every=2, end=4, progress=True)
    resumed.load_state_dict({"steps": 3})
    assert resumed._bar.n == 3
    resumed.load_state_dict({"steps": 2})
    assert resumed._bar.n == 2
    resumed.load_state_dict({"steps": 9})
    assert resumed._bar is None and "4/4" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="python3-tqdm"):
        SET(net, optimiser, end=4, progress=True)


def test_erk_gives_narrow_layers_more():
    sizes = [(512, 784), (512, 512), (10, 512)]
    found = erk(sizes, 0.005)
    total = sum(d * x * y for d, (x, y) in zip(found, sizes)) / sum(x * y for x, y in sizes)
    assert total == pytest.approx(0.005, rel=0.01) and found[2] > found[0] and found[2] > found[1]
    shares = [d * x * y / (x + y) for d, (x, y) in zip(found, sizes)]
    assert max(shares) == pytest.approx(min(shares), rel=1e-6)
    assert erk([(4, 4)], 1.0) == [1.0] and len(erk(sizes, 0.02, block=2)) == 3
    for wrong, density, text in (([], 0.1, "layers"), ([(0, 4)], 0.1, "outputs is 0"), (sizes, 0.0, "density")):
        with pytest.raises(ts.InvalidArgument, match=text):
            erk(wrong, density)
