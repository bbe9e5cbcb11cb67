"""AdamW over float32 copies of bf16 parameters, with a learning rate that follows the clock."""

from __future__ import annotations

import re
import time

import torch
from torch import Tensor, nn

WARM_UP = 0.06
DECAY = 0.01
LARGEST_GRADIENT = 1.0


class ClockedAdamW:
    """Linear decay to zero by time after a warm-up: runs end on time and annealed."""

    def __init__(
        self, model: nn.Module, rate: float, seconds: float, depth_decay: float = 1.0
    ) -> None:
        """`depth_decay` is a layer's rate relative to the next one; embeddings are one."""
        self._rate, self._seconds = rate, seconds
        self._started = time.monotonic()
        self._model = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._names = [
            name for name, parameter in model.named_parameters() if parameter.requires_grad
        ]
        self._masters = [parameter.detach().float().clone() for parameter in self._model]
        top = max(_depth(name, 0) for name in self._names)
        depths = [_depth(name, top) for name in self._names]
        groups = [
            {
                "params": [
                    one
                    for one, own in zip(self._masters, depths, strict=True)
                    if (one.ndim > 1, own) == key
                ],
                "weight_decay": DECAY if key[0] else 0.0,
                "share": depth_decay ** (top - key[1]),
            }
            for key in sorted(
                {(one.ndim > 1, own) for one, own in zip(self._masters, depths, strict=True)}
            )
        ]
        self._adam = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), eps=1e-8)

    @property
    def spent(self) -> float:
        return min(1.0, (time.monotonic() - self._started) / self._seconds)

    def step(self) -> float:
        spent = self.spent
        share = spent / WARM_UP if spent < WARM_UP else (1 - spent) / (1 - WARM_UP)
        for group in self._adam.param_groups:
            group["lr"] = self._rate * group["share"] * max(share, 0.0)
        for master, parameter in zip(self._masters, self._model, strict=True):
            master.grad = parameter.grad.float() if parameter.grad is not None else None
            parameter.grad = None
        norm = torch.nn.utils.clip_grad_norm_(
            [one for one in self._masters if one.grad is not None], LARGEST_GRADIENT
        )
        self._adam.step()
        with torch.no_grad():
            torch._foreach_copy_(self._model, self._masters)
        return float(norm) if spent >= 1 else 0.0

    def state(self) -> dict[str, Tensor]:
        return {
            name: master.detach().cpu()
            for name, master in zip(self._names, self._masters, strict=True)
        }


def _depth(name: str, top: int) -> int:
    """Return 0 for embeddings, n + 1 for layer n; the head counts with the last layer."""
    found = re.search(r"layers\.(\d+)\.", name)
    return (
        int(found[1]) + 1
        if found
        else 0
        if re.search(r"words|positions|segments|norm", name)
        else top
    )
