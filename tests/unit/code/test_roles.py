"""File paths map to their role."""

import pytest

from trivet.code.file_kind import Role, role_of


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("src/flask/app.py", Role.CODE),
        ("src/contest.py", Role.CODE),
        ("src/latest/app.go", Role.CODE),
        ("tests/conftest.py", Role.TEST),
        ("pkg/client_test.go", Role.TEST),
        ("src/client.spec.ts", Role.TEST),
        ("Sources/ClientTests.swift", Role.TEST),
        ("app/src/androidTest/Client.kt", Role.TEST),
        ("examples/tutorial/app.py", Role.EXAMPLE),
        ("vendor/lib/a.go", Role.VENDORED),
        ("docs/conf.py", Role.DOCUMENTATION),
        ("README.md", Role.DOCUMENTATION),
        ("examples/vendor/a.py", Role.VENDORED),
        ("package.json", Role.CONFIGURATION),
        (".github/workflows/ci.yml", Role.CONFIGURATION),
        ("types/index.d.ts", Role.DECLARATION),
    ],
)
def test_path_gives_file_role(path: str, role: Role) -> None:
    assert role_of(path) is role
