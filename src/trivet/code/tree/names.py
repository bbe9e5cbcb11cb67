"""What is left out by its name alone: what is certainly no text, keys, and folders of others' code or build output."""

from __future__ import annotations

from collections.abc import Collection

NOT_TEXT = frozenset(
    # images, sound, film
    "png jpg jpeg gif bmp ico icns tif tiff webp avif heic psd xcf ai eps raw cr2 "
    "mp3 wav ogg flac aac m4a opus mid midi mp4 m4v mov avi mkv webm wmv flv "
    # fonts
    "ttf otf woff woff2 eot pfb pfm "
    # archives and packages
    "zip gz tgz bz2 xz zst lz4 7z rar tar jar war ear whl egg deb rpm apk ipa dmg iso nupkg crate gem "
    # programs and what compilers write
    "exe dll so dylib a lib o obj ko bin class pyc pyo pyd wasm elc beam rlib rmeta pdb nib node "
    # documents and data that are no text
    "pdf doc docx xls xlsx ppt pptx odt ods odp epub djvu "
    "db sqlite sqlite3 mdb dbf parquet arrow feather avro orc h5 hdf5 npy npz pkl pickle joblib mat rds rdata "
    "onnx pt pth safetensors gguf tflite pb ckpt mo gmo shp shx dta sas7bdat xpt blend fbx glb stl "
    # what tools write for themselves
    "map lockb".split()
)
# A search shows what it finds, so what holds keys is not read at all.
_KEYS = frozenset("pem key p12 pfx jks keystore kdbx gpg ppk".split())
_KEY_FILES = frozenset(
    (".env", ".netrc", ".pgpass", ".pypirc", ".htpasswd", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519")
)
_ENVIRONMENT_EXAMPLES = ("example", "sample", "template", "dist", "defaults")

# Folders of a plain walk (git's own ignore files say it otherwise): by their name alone,
OTHERS_CODE = frozenset(("node_modules", "bower_components", "jspm_packages", "site-packages", "__pycache__"))
# and by their name where one of these stands beside them.
BUILT_BESIDE = {
    "target": frozenset(("Cargo.toml", "pom.xml", "build.sbt")),
    "_build": frozenset(("mix.exs", "dune-project", "rebar.config")),
    "deps": frozenset(("mix.exs",)),
    "Pods": frozenset(("Podfile",)),
    "dist-newstyle": frozenset(("cabal.project",)),
    "zig-out": frozenset(("build.zig",)),
    "zig-cache": frozenset(("build.zig",)),
}
# What stands in a folder that some tool made.
MARKS = {
    "CACHEDIR.TAG": "a cache",
    "pyvenv.cfg": "a Python environment",
    "CMakeCache.txt": "build output",
    "build.ninja": "build output",
    ".ninja_log": "build output",
}
# Hidden folders that hold code.
_SHOWN = frozenset((".github", ".gitlab", ".circleci", ".buildkite", ".husky", ".cargo", ".storybook"))


def file_reason(name: str) -> str | None:
    """Why a file of this name is left out; None if it is not."""
    ending = name.rpartition(".")[2].lower()
    if ending in NOT_TEXT and len(ending) < len(name):
        return "no text, by its ending"
    if name in _KEY_FILES or (ending in _KEYS and len(ending) < len(name)):
        return "may hold keys"
    if name.startswith(".env.") and ending not in _ENVIRONMENT_EXAMPLES:
        return "may hold keys"
    return None


def folder_reason(name: str, beside: Collection[str]) -> str | None:
    """Why a folder of this name, with these names beside it, is not walked into."""
    if name.startswith(".") and name not in _SHOWN:
        return "hidden"
    if name in OTHERS_CODE:
        return "others' code"
    if any(mark in beside for mark in BUILT_BESIDE.get(name, ())):
        return "build output"
    return None


def content_reason(names: Collection[str]) -> str | None:
    """Why a folder with these names in it is not walked into."""
    return next((reason for mark, reason in MARKS.items() if mark in names), None)
