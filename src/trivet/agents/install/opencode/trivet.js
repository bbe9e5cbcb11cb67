// Trivet's plugin for opencode, written by `trivet install opencode`. `trivet uninstall opencode` removes it.
// It adds the memories that matter to each prompt, and after each answer hands the user's own words to Trivet's inbox.
import { spawn } from "node:child_process"

const PROGRAM = "PROGRAM"
const ARGUMENTS = "ARGUMENTS"
// The hook gives up by itself before that.
const LIMIT_MS = 30_000

export const TrivetPlugin = async ({ client, directory }) => {
  const nextStart = new Map() // by conversation: why it starts, or "" once it has
  const unread = new Map() // by conversation: what its user said since the last answer
  const said = (session, name, more) => ({ session_id: session, cwd: directory, hook_event_name: name, ...more })

  const isByUser = async (session) => {
    // A subagent's prompts are written by an agent, and nothing is learned from them.
    const found = await client.session.get({ path: { id: session } }).catch(() => undefined)
    return Boolean(found?.data) && !found.data.parentID
  }

  return {
    "chat.message": async ({ sessionID: session }, { message, parts }) => {
      const own = parts.filter((part) => part.type === "text" && !part.synthetic)
      // `opencode run` puts quotation marks around what was typed, which would ask for these very words.
      const prompt = own.map((part) => part.text).join("\n").replace(/^"([^]*)"$/, "$1")
      const source = nextStart.get(session) ?? "startup"
      nextStart.set(session, "")
      const texts = source ? [await hook("start", said(session, "SessionStart", { source }))] : []
      texts.push(await hook("prompt", said(session, "UserPromptSubmit", { prompt })))
      if (prompt && (await isByUser(session))) unread.set(session, [...(unread.get(session) ?? []), prompt])
      const text = texts.filter(Boolean).join("\n\n")
      if (!text || !own.length) return
      const last = parts[parts.length - 1]
      parts.push({ id: `${last.id}t`, sessionID: session, messageID: message.id, type: "text", text, synthetic: true })
    },

    event: async ({ event }) => {
      const session = event.properties?.sessionID
      if (event.type === "session.compacted") {
        nextStart.set(session, "compact")
        await hook("compact", said(session, "PreCompact", {}))
      }
      if (event.type === "session.idle" && unread.has(session)) {
        const messages = unread.get(session)
        unread.delete(session)
        await hook("stop", said(session, "Stop", { user_messages: messages }))
      }
    },
  }
}

// What Trivet answers, or nothing: a hook that fails never stands in the way of a prompt.
function hook(moment, event) {
  return new Promise((done) => {
    const child = spawn(PROGRAM[0], [...PROGRAM.slice(1), moment, ...ARGUMENTS], {
      stdio: ["pipe", "pipe", "ignore"],
      detached: true, // what was said is learned even if opencode ends meanwhile
    })
    const limit = setTimeout(() => child.kill(), LIMIT_MS)
    let out = ""
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (piece) => {
      out += piece
    })
    child.on("error", () => done(""))
    child.on("close", () => {
      clearTimeout(limit)
      done(contextIn(out))
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })
}

function contextIn(out) {
  try {
    return JSON.parse(out).hookSpecificOutput?.additionalContext ?? ""
  } catch {
    return ""
  }
}
