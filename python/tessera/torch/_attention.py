"""Multi-head attention with sparse projections."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tessera._core import InvalidArgument
from tessera.torch._linear import SparseLinear

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")


class SparseAttention(nn.Module):
    """As torch.nn.MultiheadAttention, with a SparseLinear for each of its four projections.

    Made by sparsify() or from_dense(). torch's blocks call it as they call theirs, so that encoder and decoder layers
    train and evaluate with it, at the speed of sparse layers. state_dicts of a MultiheadAttention load.
    """

    # Which torch's encoder layers read before they choose their fused path: it needs one weight for all.
    _qkv_same_embed_dim = False
    in_proj_weight = in_proj_bias = None

    q_proj: SparseLinear
    k_proj: SparseLinear
    v_proj: SparseLinear
    out_proj: SparseLinear

    def __init__(self, projections: dict[str, SparseLinear], heads: int, dropout: float = 0.0, batch_first: bool = False) -> None:
        super().__init__()
        for name in PROJECTIONS:
            self.add_module(name, projections[name])
        self.embed_dim, self.kdim, self.vdim = (getattr(self, n).in_features for n in ("q_proj", "k_proj", "v_proj"))
        if self.embed_dim % heads:
            raise InvalidArgument(f"{self.embed_dim} features are not divided by {heads} heads")
        self.num_heads, self.head_dim = heads, self.embed_dim // heads
        self.dropout, self.batch_first = dropout, batch_first

    @classmethod
    def from_dense(cls, attention: nn.MultiheadAttention, densities: Any = None, **options: Any) -> SparseAttention:
        """Return the sparse form of a block: densities are four, one number, or None for a pruned block.

        options are those of SparseLinear.from_dense.
        """
        reason = unsupported(attention)
        if reason is not None:
            raise InvalidArgument(f"SparseAttention: {reason}")
        shares = densities if isinstance(densities, (list, tuple)) else [densities] * 4
        made = {
            name: SparseLinear.from_dense(linear, density=share, **options)
            for (name, linear), share in zip(dense_projections(attention).items(), shares)
        }
        block = cls(made, attention.num_heads, attention.dropout, attention.batch_first)
        return block.train(attention.training)

    def to_dense(self) -> nn.MultiheadAttention:
        """Return a torch.nn.MultiheadAttention with the same weights."""
        has_bias = self.q_proj.bias is not None
        dense = nn.MultiheadAttention(
            self.embed_dim, self.num_heads, self.dropout, has_bias, kdim=self.kdim, vdim=self.vdim,
            batch_first=self.batch_first, dtype=self.q_proj.values.dtype,
        )
        parts = [getattr(self, name).to_dense() for name in PROJECTIONS]
        with torch.no_grad():
            if dense.in_proj_weight is not None:
                dense.in_proj_weight.copy_(torch.cat([part.weight for part in parts[:3]]))
            else:
                for name, part in zip(PROJECTIONS, parts[:3]):
                    getattr(dense, f"{name}_weight").copy_(part.weight)
            dense.out_proj.weight.copy_(parts[3].weight)
            if has_bias:
                dense.in_proj_bias.copy_(torch.cat([part.bias for part in parts[:3]]))
                dense.out_proj.bias.copy_(parts[3].bias)
        return dense.train(self.training)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return (result, weights or None) as torch.nn.MultiheadAttention does; is_causal is a hint, as there."""
        if is_causal and attn_mask is None:
            raise InvalidArgument("is_causal is a hint about attn_mask: pass attn_mask as well")
        one = query.dim() == 2
        if one:
            query, key, value = (t.unsqueeze(0) for t in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        q, k, v = (self._heads(p(t)) for p, t in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value)))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        scores = _masked(_masked(scores, attn_mask, self.num_heads, "attn_mask"), key_padding_mask, 0, "key_padding_mask")
        weights = functional.softmax(scores, -1)
        mixed = functional.dropout(weights, self.dropout, self.training) @ v
        result = self.out_proj(mixed.transpose(1, 2).flatten(2))
        shown = (weights.mean(1) if average_attn_weights else weights) if need_weights else None
        if one:
            return result.squeeze(0), None if shown is None else shown.squeeze(0)
        return result if self.batch_first else result.transpose(0, 1), shown

    def extra_repr(self) -> str:
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, dropout={self.dropout:g}, batch_first={self.batch_first}"

    def _heads(self, projected: Tensor) -> Tensor:
        return projected.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        for kind in ("weight", "bias"):
            whole = state_dict.pop(f"{prefix}in_proj_{kind}", None)
            if whole is not None:
                for name, part in zip(PROJECTIONS, whole.chunk(3)):
                    state_dict[f"{prefix}{name}.{kind}"] = part
        for name in PROJECTIONS[:3]:
            if f"{prefix}{name}_weight" in state_dict:
                state_dict[f"{prefix}{name}.weight"] = state_dict.pop(f"{prefix}{name}_weight")
        super()._load_from_state_dict(state_dict, prefix, *rest)  # type: ignore[no-untyped-call]


def unsupported(attention: nn.MultiheadAttention) -> str | None:
    """Return why a block has no sparse form, None if it has one."""
    if type(attention) is not nn.MultiheadAttention:
        return f"a {type(attention).__name__} is no torch.nn.MultiheadAttention"
    if attention.bias_k is not None or attention.bias_v is not None:
        return "add_bias_kv is not supported"
    return "add_zero_attn is not supported" if attention.add_zero_attn else None


def dense_projections(attention: nn.MultiheadAttention) -> dict[str, nn.Linear]:
    """Return the four projections of a block as linear layers, which are copies."""
    if attention.in_proj_weight is not None:
        weights = attention.in_proj_weight.detach().chunk(3)
    else:
        weights = tuple(getattr(attention, f"{name}_weight").detach() for name in PROJECTIONS[:3])
    biases = (None,) * 3 if attention.in_proj_bias is None else attention.in_proj_bias.detach().chunk(3)
    made = {}
    for name, weight, bias in zip(PROJECTIONS, (*weights, attention.out_proj.weight), (*biases, attention.out_proj.bias)):
        linear = nn.Linear(weight.shape[1], weight.shape[0], bias is not None, dtype=weight.dtype)
        linear.weight.data = weight.detach()
        if bias is not None:
            linear.bias.data = bias.detach()
        made[name] = linear
    return made


def _masked(scores: Tensor, mask: Tensor | None, heads: int, name: str) -> Tensor:
    """Return scores [batch, heads, targets, sources] with a mask; heads 0: it is [batch, sources]."""
    if mask is None:
        return scores
    if heads == 0:
        mask = mask[:, None, None, :]
    elif mask.dim() == 3:
        mask = mask.unflatten(0, (-1, heads))
    if mask.dtype == torch.bool:
        return scores.masked_fill(mask, -math.inf)
    if not mask.is_floating_point():
        raise TypeError(f"{name} is {mask.dtype}; it is bool, or a float that is added: pass {name}.bool()")
    return scores + mask
