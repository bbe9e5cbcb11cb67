def main(seed: int, share: float) -> dict[str, object]:
    return {"skipped": "not yet"}
