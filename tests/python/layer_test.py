"""The layer beside SciPy in double precision."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from model import (
    BLOCKS,
    DENSITIES,
    NUMPY_TYPES,
    dense,
    expect_gradient,
    expect_product,
    random_array,
    random_weights,
    strided,
)

import tessera as ts

PATTERNS = st.sampled_from(["plain", "fortran", "steps", "negative"])


def example():
    """Returns a small layer, its weights and operands."""
    rng = np.random.default_rng(1)
    weights = random_weights(1, 48, 40, (1, 1), 0.2)
    layer = ts.Layer(weights, batch=16)
    return layer, weights, random_array(rng, (40, 16)), random_array(rng, (48, 16))


@settings(max_examples=120)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.tuples(st.integers(0, 70), st.integers(0, 70), st.integers(0, 40)),
    block=BLOCKS,
    density=DENSITIES,
    dtype=st.sampled_from(["float32", "float16"]),
    order=st.sampled_from(["features_first", "batch_first"]),
    patterns=st.tuples(PATTERNS, PATTERNS, PATTERNS),
    whole=st.booleans(),
    given_out=st.booleans(),
)
def test_passes_are_those_of_scipy_within_rounding(
    seed, sizes, block, density, dtype, order, patterns, whole, given_out
):
    outputs, inputs, batch = sizes
    rng = np.random.default_rng(seed)
    weights = random_weights(seed, outputs, inputs, block, density, whole)
    outputs, inputs = weights.shape
    layer = ts.Layer(weights, batch=max(batch, 1), dtype=dtype, order=order)
    kind = NUMPY_TYPES[dtype]
    turn = (lambda array: array.T) if order == "batch_first" else (lambda array: array)

    s = random_array(rng, (inputs, batch), whole).astype(kind)
    dq = random_array(rng, (outputs, batch), whole).astype(kind)
    given_s, given_dq = strided(turn(s), patterns[0]), strided(turn(dq), patterns[1])
    room = strided(turn(np.full((outputs, batch), 7, kind)), patterns[2])
    q = layer.forward(given_s, out=room) if given_out else layer @ given_s
    assert q is room or not given_out
    expect_product(turn(q), dense(weights, dtype), s, layer.rounding())
    expect_product(
        turn(layer.grad_input(given_dq)), dense(weights, dtype).T, dq, layer.rounding("grad_input")
    )
    gradient = layer.grad_weights(given_dq, given_s)
    expect_gradient(gradient, weights, dq, s, layer.rounding("grad_weights"))
    if whole:  # sums of a few +1 and -1 are exact in every type
        assert (turn(q) == dense(weights) @ s).all()


@settings(max_examples=12, stateful_step_count=12)
class LayerBesideScipy(RuleBasedStateMachine):
    """Changes a layer and a dense matrix with a mask in the same way."""

    @initialize(seed=st.integers(0, 2**32 - 1), block=BLOCKS, density=DENSITIES)
    def make(self, seed, block, density):
        self.rng = np.random.default_rng(seed)
        weights = random_weights(seed, 30, 24, block, density)
        self.layer = ts.Layer(weights, batch=5)
        self.follow(weights)

    def follow(self, weights):
        """Takes weights as the expected ones."""
        self.block = weights.blocksize if weights.format == "bsr" else (1, 1)
        self.weights = weights

    @rule()
    def set_values(self):
        values = random_array(self.rng, self.weights.data.shape)
        self.layer.values = values
        self.weights.data[...] = values

    @rule(density=DENSITIES)
    def set_weights(self, density):
        weights = random_weights(self.rng.integers(2**32), *self.weights.shape, self.block, density)
        self.layer.set_weights(weights)
        self.follow(weights)

    @rule(share=st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    def update(self, share):
        height, width = self.block
        rows, cols = self.weights.shape[0] // height, self.weights.shape[1] // width
        stored = np.zeros((rows, cols), bool)
        stored[np.repeat(np.arange(rows), np.diff(self.weights.indptr)), self.weights.indices] = True
        change = self.rng.random((rows, cols)) < share
        removed, added = np.nonzero(stored & change), np.nonzero(~stored & change)
        self.layer.update(removed=removed, added=added)
        old = self.weights.toarray()
        full = np.ones((height, width))
        old[np.kron(stored & change, full) > 0] = 0
        # A stored zero keeps its place: the expected matrix is made of the mask, not of the values.
        mask = stored ^ change
        indptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
        blocks = old.reshape(rows, height, cols, width).swapaxes(1, 2)[mask]
        indices = np.nonzero(mask)[1]
        if self.block == (1, 1):
            self.follow(sp.csr_matrix((blocks.reshape(-1), indices, indptr), old.shape))
        else:
            self.follow(sp.bsr_matrix((blocks, indices, indptr), old.shape, blocksize=self.block))

    @rule(how=st.sampled_from([copy.deepcopy, copy.copy, lambda l: pickle.loads(pickle.dumps(l))]))
    def replace_by_a_copy(self, how):
        self.layer = how(self.layer)

    @invariant()
    def agrees(self):
        if not hasattr(self, "layer"):
            return
        got = self.layer.weights
        assert (got.indptr == self.weights.indptr).all()
        assert (got.indices == self.weights.indices).all()
        assert (got.data == self.weights.data).all()
        s, dq = random_array(self.rng, (got.shape[1], 5)), random_array(self.rng, (got.shape[0], 5))
        expect_product(self.layer @ s, got.toarray(), s, self.layer.rounding())
        expect_product(
            self.layer.grad_input(dq), got.toarray().T, dq, self.layer.rounding("grad_input")
        )
        expect_gradient(
            self.layer.grad_weights(dq, s), got, dq, s, self.layer.rounding("grad_weights")
        )


TestLayerBesideScipy = LayerBesideScipy.TestCase


def test_not_a_number_spreads_as_in_scipy_through_stored_places_only():
    layer, weights, s, _ = example()
    s[3, 2], s[5, 1] = np.nan, np.inf
    expected = weights @ s
    assert (np.isfinite(layer @ s) == np.isfinite(expected)).all()


def test_bits_do_not_depend_on_threads():
    _, weights, s, dq = example()
    results = []
    for threads in (1, 2, 3):
        layer = ts.Layer(weights, batch=16, threads=threads)
        results.append((layer @ s, layer.grad_input(dq), layer.grad_weights(dq, s)))
    for other in results[1:]:
        assert all((a == b).all() for a, b in zip(results[0], other))


def test_an_output_may_overlap_operands():
    rng = np.random.default_rng(3)
    weights = random_weights(3, 32, 32, (1, 1), 0.3)
    layer = ts.Layer(weights, batch=8)
    s = random_array(rng, (32, 8))
    expected, plain = layer @ s, s.copy()
    assert layer.forward(s, out=s) is s
    assert (s == expected).all()
    room = np.concatenate([plain, plain])
    layer.forward(room[:32], out=room[16:48])
    assert (room[16:48] == expected).all()
    bias = random_array(rng, (40,))
    expected = layer.forward(plain, bias=bias[:32].copy())
    both = np.concatenate([np.zeros(7 * 32, np.float32), bias])
    assert (layer.forward(plain, out=both[: 8 * 32].reshape(32, 8), bias=both[7 * 32 : 8 * 32]) == expected).all()
    dq, values = random_array(rng, (32, 8)), np.empty(layer.nnz + 256, np.float32)
    gradient = layer.grad_weights(dq, plain)
    values[:256] = plain.reshape(-1)
    layer.grad_weights(dq, values[:256].reshape(32, 8), out=values[: layer.nnz])
    assert (values[: layer.nnz] == gradient).all()


@pytest.mark.parametrize("width", [1, 3, 16, 17, 40])
def test_any_batch_and_a_bias(width):
    layer, weights, _, _ = example()
    rng = np.random.default_rng(width)
    s, dq, bias = random_array(rng, (40, width)), random_array(rng, (48, width)), random_array(rng, (48,))
    q = layer @ s
    expect_product(q, dense(weights), s, layer.rounding())
    assert (layer.forward(s, bias=bias) == q + bias[:, None]).all()
    expect_product(layer.grad_input(dq), dense(weights).T, dq, layer.rounding("grad_input"))
    rounding = layer.rounding("grad_weights")
    expect_gradient(layer.grad_weights(dq, s), weights, dq, s, rounding._replace(partials=rounding.partials + width))
    with pytest.raises(ts.InvalidArgument, match="bias"):
        layer.forward(s, bias=bias[1:])
    assert (ts.Layer(np.zeros((4, 0), np.float32)).forward(s[:0], bias=bias[:4]) == bias[:4, None]).all()


def test_bfloat16_is_bits_in_uint16():
    layer, weights, s, _ = example()
    narrow = ts.Layer(weights, batch=16, dtype="bfloat16")
    bits = (s.view(np.uint32) >> 16).astype(np.uint16)
    q = narrow @ bits
    assert q.dtype == np.uint16
    wide = (q.astype(np.uint32) << 16).view(np.float32)
    assert np.abs(wide - layer @ s).max() < 0.1


def test_text_says_size_density_block_and_memory():
    layer = example()[0]
    for text in (repr(layer), layer._repr_html_()):
        for word in ("48 x 40", "density", "365 values", "1 x 1", f"{layer.memory_bytes / 1000:.3g} kB"):
            assert word in text
    # For each value: 4 bytes and its column in the matrix; value, word and source in Fwd and in GradA.
    matrix, cells = 365 * 8 + 49 * 8, 365 * (4 + 2 + 4)
    assert matrix + 2 * cells < layer.memory_bytes < 3 * (matrix + 2 * cells)
    assert layer.memory_bytes > 1.5 * ts.Layer(example()[1], batch=16, passes="fwd").memory_bytes
    layer @ example()[2]
    assert layer.times.seconds > 0
    assert "grad_weights" in ts.Layer.__doc__


def test_passes_may_leave_out_the_gradient_of_the_input():
    whole, weights, s, dq = example()
    layer = ts.Layer(weights, batch=16, passes="fwd+grad_weights")
    assert (layer @ s == whole @ s).all()
    assert (layer.grad_weights(dq, s) == whole.grad_weights(dq, s)).all()
    forward = ts.Layer(weights, batch=16, passes="fwd")
    assert forward.memory_bytes <= layer.memory_bytes < whole.memory_bytes
    with pytest.raises(ts.InvalidArgument, match='passes="all"'):
        layer.grad_input(dq)
    with pytest.raises(ts.InvalidArgument, match="fwd\\+grad_weights"):
        ts.Layer(weights, passes="grad_weights")


def test_passes_fwd_refuses_gradients():
    _, weights, s, dq = example()
    layer = ts.Layer(weights, batch=16, passes="fwd")
    assert (layer @ s == example()[0] @ s).all()
    with pytest.raises(ts.InvalidArgument, match='passes="all"'):
        layer.grad_input(dq)
