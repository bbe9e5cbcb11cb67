"""The step of a recipe that reranks: which model, how many of the best it reads, and how much its word counts."""

from __future__ import annotations

import msgspec

from trivet.models.rerank.spec import BLEND, OFF, PRESETS, TOP, RerankSpec

# The reranker that the settings name, where it is not one of the presets.
OWN = "own"
CONFIGURED = ""
MODELS: tuple[str, ...] = (OFF, *PRESETS, OWN)


class Rerank(msgspec.Struct, frozen=True):
    """`model` empty: the one of the settings, and `best` if they have none. `top`, `blend` None: as suits the model."""

    model: str = CONFIGURED
    top: int | None = None
    blend: float | None = None


def resolved(step: Rerank | None, option: str | None, setting: RerankSpec) -> Rerank | None:
    """What a recall does: its own option wins over its recipe's step, which wins over the setting. None: nothing."""
    model = option or (step.model if step else "")
    if not model:
        model = "best" if step and setting.kind == OFF else setting.kind
    if model == OFF or (model == OWN and setting.kind == OFF):
        return None
    step = step or Rerank()
    preset = PRESETS.get(model)
    blend = (preset.blend if preset else BLEND) if step.blend is None else step.blend
    return Rerank(model if preset else OWN, step.top or (preset.top if preset else TOP), blend)
