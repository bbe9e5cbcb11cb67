#!/bin/sh
# test_adapters.sh [FRAMEWORK ...]: installs each framework of today into a venv of its own and runs the tests and the
# example of its adapter. VENVS is where the venvs are kept, UV the uv to install with.
set -eu
cd "$(dirname "$0")/.."
VENVS=${VENVS:-.adapters}
UV=${UV:-.venv/bin/uv}
TRIVET_CONFIG=$(pwd)/.adapters-have-no-settings.toml
export TRIVET_CONFIG

# The name of the extra, its tests, its example.
table() {
	echo "langgraph test_langgraph.py langgraph_store.py"
	echo "langchain test_langchain.py langchain_retriever.py"
}

table | while read -r extra tests example; do
	case " $* " in "  " | *" $extra "*) ;; *) continue ;; esac
	began=$(date +%s)
	[ -x "$VENVS/$extra/bin/python" ] || python3 -m venv --without-pip "$VENVS/$extra"
	"$UV" pip install --quiet --upgrade-package "$extra" --python "$VENVS/$extra/bin/python" -e ".[$extra]" pytest hypothesis
	installed=$(date +%s)
	"$VENVS/$extra/bin/python" -m pytest -q -p no:cacheprovider "tests/adapters/$tests" </dev/null
	"$VENVS/$extra/bin/python" "examples/$example" </dev/null
	echo "$extra: installed in $((installed - began)) s, tested in $(($(date +%s) - installed)) s"
done
