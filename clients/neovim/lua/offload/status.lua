--- How a task is said in a few words beside its block: the same words as the server's own lenses and the VS Code
--- client, which a table of cases holds together (tests/clients/status_cases.json). Knows tasks as they come over the
--- wire, no buffers.

local M = {}

--- Longer texts are cut: a mark shares its line with code.
local LIMIT = 100

--- Own words are the name of their task; these must leave room for its status.
local NAME_LIMIT = 40

local PLAIN = {
  checking = 'checking the result',
  cancelling = 'stopping',
}

--- The phases in which something goes on that can be told.
local DOING = { starting = true, working = true, checking = true }

---@type table<offload.Checked, string>
local CHECKED = {
  not_checked = 'not checked',
  passed = 'checked',
  failed = 'checks fail',
}

---@alias offload.Level 'live'|'waiting'|'ready'|'failed'|'quiet'

--- Which of several tasks at one place is shown.
---@type table<offload.Level, integer>
local ORDER = { waiting = 1, live = 2, ready = 3, failed = 4, quiet = 5 }

--- What a worker said must not move the cursor or set the window's title, so control characters become a visible sign.
---@param text string
---@param limit integer
---@return string
local function one_line(text, limit)
  text = vim.trim((text:gsub('%s+', ' '))):gsub('%c', '\u{FFFD}'):gsub('\194[\128-\159]', '\u{FFFD}')
  if vim.fn.strchars(text) <= limit then
    return text
  end
  return vim.fn.strcharpart(text, 0, limit - 1) .. '…'
end

---@param changes offload.ChangesView?
---@return string
local function summary(changes)
  local count = changes and #changes.files + (changes.files_left_out or 0) or 0
  if not changes or count == 0 then
    return 'no change'
  end
  return ('%d file%s +%d -%d'):format(count, count == 1 and '' or 's', changes.added_lines, changes.removed_lines)
end

---@param ask offload.AskView
---@return string, offload.Level
local function asked(ask)
  return ('waits for you: %s: %s'):format(ask.subject, ask.detail), 'waiting'
end

---@param task offload.TaskView
---@return string, offload.Level
local function live(task)
  local text = PLAIN[task.phase] or task.phase
  if task.place then
    text = ('%s, place %d'):format(text, task.place)
  elseif DOING[task.phase] and task.activity then
    text = ('%s: %s'):format(text, task.activity.label ~= '' and task.activity.label or task.activity.kind)
  end
  return text, 'live'
end

--- What has become of a result: of each of its hunks, or of a file that has none.
---@param changes offload.ChangesView?
---@return string
local function became(changes)
  local found = {} ---@type table<offload.ReviewState, true>
  for _, file in ipairs(changes and changes.files or {}) do
    for _, part in ipairs(file.hunks and file.hunks[1] and file.hunks or { file }) do
      found[part.state] = true
    end
  end
  if found.applied then
    return found.pending and 'partly applied' or 'applied'
  end
  return found.rejected and not found.pending and 'rejected' or 'ready'
end

---@param task offload.TaskView
---@return string, offload.Level
local function ready(task)
  local turn = task.turns[#task.turns]
  local word = became(turn.changes)
  local text = ('%s: %s'):format(word, summary(turn.changes))
  if turn.changes and #turn.changes.files > 0 then
    text = ('%s, %s'):format(text, CHECKED[turn.checked or 'not_checked'])
  end
  if turn.needs_review ~= '' then
    return ('%s, needs a look: %s'):format(text, turn.needs_review), 'waiting'
  end
  return text, (word == 'applied' or word == 'rejected') and 'quiet' or 'ready'
end

---@param task offload.TaskView
---@return string, offload.Level
local function said(task)
  if task.asks[1] then
    return asked(task.asks[1])
  elseif not M.rests(task) then
    return live(task)
  elseif task.phase == 'ready' then
    return ready(task)
  end
  local failure = task.turns[#task.turns].failure
  local text = failure and ('%s: %s'):format(task.phase, failure.message) or task.phase
  return text, task.phase == 'cancelled' and 'quiet' or 'failed'
end

--- Whether nothing happens to the task by itself any more.
---@param task offload.TaskView
---@return boolean
function M.rests(task)
  return vim.list_contains({ 'ready', 'failed', 'cancelled', 'interrupted' }, task.phase)
end

--- Where the task stands, and how much it wants to be looked at.
---@param task offload.TaskView
---@return string text one line
---@return offload.Level level
function M.of(task)
  local text, level = said(task)
  return one_line(text, LIMIT), level
end

--- What stands at the end of the block's first line.
---@param task offload.TaskView
---@return string text
---@return offload.Level level
function M.mark(task)
  local text, level = M.of(task)
  local name = task.recipe == 'instruction' and one_line(task.title, NAME_LIMIT) .. ' —' or task.recipe
  return ('◀ %s %s'):format(name, text), level
end

---@param task offload.TaskView
---@return integer rank the lowest comes first
local function rank(task)
  local _, level = said(task)
  return ORDER[level] + (M.rests(task) and not task.asks[1] and 10 or 0)
end

--- What stands at the end of a line at which several tasks' blocks begin: the status of one, a live one if there is
--- one, and how many more there are.
---@param tasks offload.TaskView[] newest first, at least one
---@return string text
---@return offload.Level level
function M.line(tasks)
  local first = tasks[1]
  for _, task in ipairs(tasks) do
    if rank(task) < rank(first) then
      first = task
    end
  end
  local text, level = M.mark(first)
  return #tasks > 1 and ('%s  +%d'):format(text, #tasks - 1) or text, level
end

return M
