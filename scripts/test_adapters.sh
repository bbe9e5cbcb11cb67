#!/bin/sh
# test_adapters.sh [FRAMEWORK ...]: installs each framework of today into a venv of its own and runs the tests and the
# example of its adapter. VENVS is where the venvs are kept, UV the uv to install with.
set -eu
cd "$(dirname "$0")/.."
VENVS=${VENVS:-.adapters}
UV=${UV:-.venv/bin/uv}
TRIVET_CONFIG=$(pwd)/.adapters-have-no-settings.toml
export TRIVET_CONFIG

# The name of the extra, the package it is for, its tests, its example.
table() {
	echo "langgraph langgraph test_langgraph.py langgraph_store.py"
	echo "langchain langchain-core test_langchain.py langchain_retriever.py"
	echo "llama-index llama-index-core test_llama_index.py llama_index_memory.py"
	echo "openai-agents openai-agents test_openai_agents.py openai_agents_session.py"
	echo "pydantic-ai pydantic-ai-slim test_pydantic_ai.py pydantic_ai_tools.py"
}

table | while read -r extra package tests example; do
	case " $* " in "  " | *" $extra "*) ;; *) continue ;; esac
	began=$(date +%s)
	[ -x "$VENVS/$extra/bin/python" ] || python3 -m venv --without-pip "$VENVS/$extra"
	"$UV" pip install --quiet --upgrade-package "$package" --python "$VENVS/$extra/bin/python" -e ".[$extra]" pytest hypothesis
	installed=$(date +%s)
	"$VENVS/$extra/bin/python" -m pytest -q -p no:cacheprovider "tests/adapters/$tests" </dev/null
	"$VENVS/$extra/bin/python" "examples/$example" </dev/null
	echo "$extra: installed in $((installed - began)) s, tested in $(($(date +%s) - installed)) s"
done
