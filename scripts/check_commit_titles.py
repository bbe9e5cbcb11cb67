"""Check commit titles: `area: change`, imperative, at most 72 characters.

python scripts/check_commit_titles.py                 # every commit since the rule was made
python scripts/check_commit_titles.py REV..REV        # the commits of a range
python scripts/check_commit_titles.py --message FILE  # the message of a commit being made
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

# The last commit before the rule.
BEFORE_THE_RULE = "fbf388eb7158e7c1e4fe7a8eabc8bbb3cc2c41e0"
MAX_CHARACTERS = 72
TITLE = re.compile(r"[a-z0-9_.-]+(?:(?:, |/)[a-z0-9_.-]+)*: (?P<verb>[a-z]+)(?: |$)")
# First words that are not imperatives: articles, past tenses, gerunds, third persons.
NOT_IMPERATIVE = re.compile(
    r"(?:the|an?|some|new|more|no|\w+ed|\w+ing|(?:add|fix|make|remove|update|use|rename|move|show|say|read)e?s)"
)
IMPERATIVES = {
    "bring",
    "embed",
    "exceed",
    "feed",
    "need",
    "ping",
    "proceed",
    "seed",
    "shed",
    "speed",
}


def problem(title: str) -> str | None:
    """Return what is wrong with the title, or None."""
    if title.startswith(("Merge ", "Revert ")):
        return None
    if len(title) > MAX_CHARACTERS:
        return f"{len(title)} characters; at most {MAX_CHARACTERS}"
    match = TITLE.match(title)
    if match is None:
        return "not of the form `area: change`, in small letters"
    verb = match["verb"]
    if verb not in IMPERATIVES and NOT_IMPERATIVE.fullmatch(verb):
        return f"`{verb}` is not an imperative"
    return None


def titles(arguments: list[str]) -> list[str]:
    """Return the titles to check. A clone without the history yields its last commit alone."""
    if arguments[:1] == ["--message"]:
        return Path(arguments[1]).read_text(encoding="utf-8").splitlines()[:1]
    wanted = arguments[0] if arguments else f"{BEFORE_THE_RULE}..HEAD"
    found = _log(wanted)
    return found if found is not None else _log("-1") or []


def _log(wanted: str) -> list[str] | None:
    done = subprocess.run(
        ["git", "log", "--format=%s", wanted], capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines() if done.returncode == 0 else None


def main() -> int:
    """Print each wrong title with its reason and return the exit status."""
    checked = titles(sys.argv[1:])
    wrong = [(title, reason) for title in checked if (reason := problem(title))]
    for title, reason in wrong:
        print(f"{title!r}: {reason}", file=sys.stderr)
    if not wrong:
        print(f"{len(checked)} commit titles follow the rule.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
