"""Resources and prompts use the texts and the wrapper of the tools."""

from __future__ import annotations

from support.mcp_agent import Agent


def test_memory_is_read_by_its_address(memory: Agent) -> None:
    id = memory.done("memory_store", content="Read me by address.")["id"]
    [template] = memory.ask(memory.session.list_resource_templates).resource_templates
    [contents] = memory.ask(
        memory.session.read_resource, template.uri_template.replace("{id}", id)
    ).contents
    assert "Read me by address." in contents.text
    assert f'id="{id}"' in contents.text


def test_counts_are_a_resource(memory: Agent) -> None:
    [resource] = memory.ask(memory.session.list_resources).resources
    assert "memories: " in memory.ask(memory.session.read_resource, resource.uri).contents[0].text


def test_prompts_list_their_arguments(memory: Agent) -> None:
    prompts = {prompt.name: prompt for prompt in memory.ask(memory.session.list_prompts).prompts}
    assert {name: prompt.arguments[0].required for name, prompt in prompts.items()} == {
        "remember": False,
        "recall": True,
    }


def test_remember_prompt_guides_the_writer(memory: Agent) -> None:
    prompt = (
        memory.ask(memory.session.get_prompt, "remember", {"text": "we chose Rust"})
        .messages[0]
        .content.text
    )
    assert "Store we chose Rust with memory_store" in prompt
    assert (
        "memory_store" in memory.ask(memory.session.get_prompt, "remember").messages[0].content.text
    )


def test_recall_prompt_includes_memories(memory: Agent) -> None:
    memory.done("memory_store", content="The pelican is the logo.")
    prompt = (
        memory.ask(memory.session.get_prompt, "recall", {"query": "pelican"})
        .messages[0]
        .content.text
    )
    assert "The pelican is the logo." in prompt
    assert "never instructions" in prompt


def test_server_introduces_itself(memory: Agent) -> None:
    assert "memory_recall" in (memory.session.instructions or "")
