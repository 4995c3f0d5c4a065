"""Parts that several architectures share. Each is a few public operations; tensors are checked where they are taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowcompute.elements import nn
from flowcompute.elements.axes import reshape, take
from flowcompute.elements.math import tanh
from flowcompute.elements.search import argsort, take_along_axis
from flowcompute.errors import SourceError, SpecError
from flowcompute.imports import dataclass
from flowcompute.models.architectures.hyperparameters import Hyperparameters
from flowcompute.spec import FLOAT32, format_shape

Weights = Mapping[str, Any]

MOST_LAYERS = 1 << 12
"""Most layers: far more than any model has."""

MOST_EXPERTS = 1 << 12
"""Most experts of a layer."""

_SOFTMAX = 1
"""What files call the softmax over all experts."""

MOST_HEAD_SIZE = 256
"""Most numbers of a head that `fc.nn.self_attention` takes."""


@dataclass(frozen=True)
class Sizes:
    """Sizes that all layers share.

    Attributes:
        wide: numbers of the vector of a token.
        layers: how many there are.
        heads, kv_heads: of queries; of keys and values.
        head: numbers of a query, a key and a value.
        context: tokens of a text at most.
        eps: of norms.
    """

    wide: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    context: int
    eps: float

    @classmethod
    def of(cls, says: Hyperparameters) -> Sizes:
        """Read the sizes that a file says.

        Raises:
            SourceError: if it lacks one, or says what no model can be.
        """
        wide, heads = says.whole("embedding_length"), says.whole("attention.head_count")
        kv_heads = says.whole("attention.head_count_kv", heads, most=heads)
        if heads % kv_heads:
            raise SourceError(
                "cannot share heads with this attention.head_count_kv",
                expected=f"a divisor of attention.head_count, {heads}",
                got=str(kv_heads),
            )
        if "attention.key_length" not in says and wide % heads:
            raise SourceError(
                "cannot cut vectors into heads with this attention.head_count",
                expected=f"a divisor of embedding_length, {wide}",
                got=str(heads),
            )
        head = says.whole("attention.key_length", wide // heads, most=MOST_HEAD_SIZE)
        says.whole("attention.value_length", head, least=head, most=head)
        return cls(
            wide=wide,
            layers=says.whole("block_count", most=MOST_LAYERS),
            heads=heads,
            kv_heads=kv_heads,
            head=head,
            context=says.whole("context_length"),
            eps=says.real("attention.layer_norm_rms_epsilon"),
        )


@dataclass(frozen=True)
class TextLimits:
    """Amount of the texts of a stream that is kept.

    Attributes:
        slots: texts that may be open at once; see `fc.nn.self_attention`.
        context: tokens of each at most; None for what the file says.
    """

    slots: int
    context: int | None

    @classmethod
    def of(cls, said: Mapping[str, Any], context: int | None = None) -> TextLimits:
        """Read what the caller of a graph says; `context` is what the file says."""
        return cls(said.get("slots", 1), said.get("context") or context)

    def require_one_slot(self, why: str) -> None:
        """Refuse texts whose tokens come one by one of each.

        Raises:
            SpecError: if there are several slots.
        """
        if self.slots > 1:
            raise SpecError(f"cannot keep several texts apart: {why}", expected="slots=1", got=f"slots={self.slots}")


# -- tensors ----------------------------------------------------------------------------------------------------------


def tensor(w: Weights, name: str, *shape: int | None) -> Any:
    """Return a tensor of the file.

    Args:
        w: the tensors by name.
        name: of the tensor.
        shape: that it must have; None for any size.

    Raises:
        SourceError: if it is missing, or has another shape or no floats.
    """
    expected = f"float32 {format_shape(shape)}"
    if name not in w:
        raise SourceError(f"cannot make the graph of the model: tensor {name} is missing", expected=expected)
    made = w[name]
    sizes = made.shape
    fits = len(sizes) == len(shape) and all(one in (None, own) for one, own in zip(shape, sizes, strict=True))
    if not fits or made.dtype != FLOAT32 or 0 in sizes:
        raise SourceError(
            f"cannot make the graph of the model with this tensor {name}", expected=expected, got=str(made.spec)
        )
    return made


def embedded(w: Weights, tokens: Any, wide: int) -> Any:
    """Return the vectors (wide,) of tokens."""
    return take(tensor(w, "token_embd.weight", None, wide), tokens, axis=0)


def normed(x: Any, w: Weights, name: str, eps: float) -> Any:
    """Return vectors divided by their root mean square, times a weight."""
    return nn.rms_norm(x, weight=tensor(w, f"{name}.weight", x.shape[-1]), eps=eps)


def projected(x: Any, w: Weights, name: str, outputs: int) -> Any:
    """Return the product with a matrix (outputs, inputs) of the file, plus its bias where it has one."""
    made = x @ tensor(w, f"{name}.weight", outputs, x.shape[-1]).T
    return made + tensor(w, f"{name}.bias", outputs) if f"{name}.bias" in w else made


def head(w: Weights, meta: Mapping[str, Any], states: Any) -> Any:
    """Return the scores of all tokens; the matrix is that of the embedding where the file has no other."""
    cap = Hyperparameters(meta).real("final_logit_softcapping", 0.0)
    name = "output.weight" if "output.weight" in w else "token_embd.weight"
    made = states @ tensor(w, name, None, states.shape[-1]).T
    if "output.bias" in w:
        made = made + tensor(w, "output.bias", made.shape[-1])
    return tanh(made / cap) * cap if cap else made


# -- attention --------------------------------------------------------------------------------------------------------


def split_heads(x: Any, heads: int) -> Any:
    """Return vectors as items (heads, numbers of a head)."""
    return reshape(x, (-1, heads, x.shape[-1] // heads))


def joined_heads(x: Any) -> Any:
    """Return items (heads, numbers) as vectors."""
    return reshape(x, (-1, x.shape[-2] * x.shape[-1]))


def queries_keys_values(x: Any, w: Weights, layer: str, sizes: Sizes) -> tuple[Any, Any, Any]:
    """Return the heads of a layer: items (heads, head) of queries, (kv_heads, head) of keys and of values."""
    every = (("q", sizes.heads), ("k", sizes.kv_heads), ("v", sizes.kv_heads))
    q, k, v = (split_heads(projected(x, w, f"{layer}.attn_{one}", own * sizes.head), own) for one, own in every)
    return q, k, v


def rotation(says: Hyperparameters, w: Weights, size: int, factors: str = "rope_freqs.weight") -> dict[str, Any]:
    """Return the arguments of `fc.nn.rope` that a file names, all but the order of pairs.

    Args:
        says: what the file says.
        w: its tensors.
        size: numbers of a head.
        factors: the tensor that angles are divided by, where the file has it.

    Raises:
        SourceError: if the file says what no rotation can be.
    """
    dims = says.whole("rope.dimension_count", size, least=2, most=size)
    kind = says.one_of("rope.scaling.type", "linear", ("none", "linear", "yarn", "longrope"))
    # Files have 0 for no scaling.
    factor = says.real("rope.scaling.factor", says.real("rope.scale_linear", 0.0)) or 1.0
    scale = says.real("rope.scaling.attn_factor", 1.0)
    says.refuse("rope.scaling.yarn_log_multiplier")
    made: dict[str, Any] = {"base": says.real("rope.freq_base", 10000.0, least=1.0), "dims": dims}
    if kind == "yarn":
        made |= {"scaling": "yarn", "factor": factor, "attn_factor": scale}
        made |= {"original_context": says.whole("rope.scaling.original_context_length", says.whole("context_length"))}
        defaults = {"ext_factor": 1.0, "beta_fast": 32.0, "beta_slow": 1.0}
        made |= {name: says.real(f"rope.scaling.yarn_{name}", value) for name, value in defaults.items()}
    elif kind != "none" and (factor, scale) != (1.0, 1.0):
        made |= {"scaling": "linear", "factor": factor, "attn_factor": scale}
    if factors in w:
        made["frequency_factors"] = tensor(w, factors, dims // 2)
    return made


# -- feed-forward -----------------------------------------------------------------------------------------------------


def gated(x: Any, w: Weights, layer: str, inner: int, act: Any = nn.silu, end: str = "") -> Any:
    """Return the feed-forward part of a layer: down(act(gate(x)) * up(x)), `inner` numbers inside."""
    gate, up = (projected(x, w, f"{layer}.ffn_{name}{end}", inner) for name in ("gate", "up"))
    return projected(act(gate) * up, w, f"{layer}.ffn_down{end}", x.shape[-1])


@dataclass(frozen=True)
class Mixture:
    """A feed-forward part of which each token takes a few experts.

    Attributes:
        experts: how many there are.
        used: how many a token takes.
        inner: numbers inside of each.
        renormalised: whether the shares of those that a token takes sum to 1.
    """

    experts: int
    used: int
    inner: int
    renormalised: bool

    @classmethod
    def of(cls, says: Hyperparameters, inner: int, *, renormalised: bool) -> Mixture:
        """Read what a file says of its experts.

        Args:
            says: what the file says.
            inner: numbers inside of an expert.
            renormalised: where the file does not say it.

        Raises:
            SourceError: if it says what no model can be.
        """
        experts = says.whole("expert_count", most=MOST_EXPERTS)
        says.refuse("expert_weights_scale")
        says.whole("expert_gating_func", _SOFTMAX, least=_SOFTMAX, most=_SOFTMAX)
        used = says.whole("expert_used_count", most=experts)
        return cls(experts, used, inner, says.flag("expert_weights_norm", renormalised))

    def __call__(self, x: Any, w: Weights, layer: str) -> Any:
        """Return the sum of the experts with the highest probabilities, times these. Of equals the first is taken."""
        wide = x.shape[-1]
        probabilities = nn.softmax(projected(x, w, f"{layer}.ffn_gate_inp", self.experts))
        chosen = argsort(probabilities, descending=True)[:, : self.used]
        share = take_along_axis(probabilities, chosen, axis=-1)
        if self.renormalised:
            share = share / share.sum(axis=-1, keepdims=True)
        into, out = (self.experts, self.inner, wide), (self.experts, wide, self.inner)
        gate, up = (
            nn.experts(x, tensor(w, f"{layer}.ffn_{name}_exps.weight", *into), chosen) for name in ("gate", "up")
        )
        made = nn.experts(nn.silu(gate) * up, tensor(w, f"{layer}.ffn_down_exps.weight", *out), chosen)
        return (made * share[:, :, None]).sum(axis=1)
