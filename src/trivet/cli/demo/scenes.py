"""The questions the demo asks, and the point each one makes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scene:
    """`expected` is the memory that must come first."""

    title: str
    query: str
    point: str
    expected: str


SCENES: tuple[Scene, ...] = (
    Scene(
        title="The words are there",
        query="wildcard certificate does not renew",
        point="The lexical leg finds the words; the problem comes with the memory that resolves it.",
        expected="019aa04a-01a0-7202-b0ce-2c2f8909e25e",
    ),
    Scene(
        title="Other words, the same meaning",
        query="someone lost the password of a private notebook",
        point="Only one word is shared. That a password is meant by `phrase`, and why it is lost, the dense leg knows.",
        expected="019957ee-bdc0-79d6-ae5e-6de19b41fa74",
    ),
    Scene(
        title="An identifier",
        query="E_CONN_4012",
        point="Error codes are matched whole; E_CONN_4009 and E_CONN_4031 are other errors.",
        expected="019a0668-e8d0-71ba-8dea-9af915d951f3",
    ),
    Scene(
        title="Two steps away",
        query="how long may the text in speech-v3.md be when spoken",
        point="The file is in one memory, the four minutes in another; the graph leads there over the wedding.",
        expected="01a00c63-a8c8-7892-a3b2-0896d9c96100",
    ),
    Scene(
        title="What was true once",
        query="may I deploy harbor on a Friday morning",
        point="An older memory allows it and fits better, but it was superseded: its successor is served, saying so.",
        expected="019bff2e-a288-7246-b98c-3660b88f8127",
    ),
)

# Sensitive, so it was never embedded, and its words are others.
WHY_NOT = Scene(
    title="And why did this one not come?",
    query="someone lost the password of a private notebook",
    point="The office's Wi-Fi password is stored too. Any memory can be followed to where it fell out.",
    expected="0195a367-7fc0-7833-9822-6b43b68139b5",
)
