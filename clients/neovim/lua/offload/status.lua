--- How a task is said in a few words beside its block. The VS Code client says the same: both are held to one table,
--- tests/clients/status_cases.json. Knows tasks as they come over the wire, no buffers.

local M = {}

--- Longer texts are cut: a mark shares its line with code.
local LIMIT = 100

local ACTIVITY = {
  thinking = 'thinking',
  writing = 'writing',
  retrying = 'retrying',
  stalled = 'no sign of life',
}

---@alias offload.Level 'live'|'waiting'|'ready'|'failed'|'quiet'

---@param text string
---@return string
local function one_line(text)
  text = vim.trim((text:gsub('%s+', ' ')))
  if vim.fn.strchars(text) <= LIMIT then
    return text
  end
  return vim.fn.strcharpart(text, 0, LIMIT - 1) .. '…'
end

---@param changes offload.ChangesView?
---@return string
local function changed(changes)
  local count = changes and #changes.files + (changes.files_left_out or 0) or 0
  if not changes or count == 0 then
    return 'no changes'
  end
  return ('%d file%s, +%d -%d'):format(count, count == 1 and '' or 's', changes.added_lines, changes.removed_lines)
end

---@param task offload.TaskView
---@return string, offload.Level
local function working(task)
  local ask = task.asks[1]
  if ask then
    return ('waiting for you: %s %s'):format(ask.subject, ask.detail), 'waiting'
  end
  local activity = task.activity
  if not activity then
    return 'working', 'live'
  end
  local doing = activity.label ~= '' and activity.label or ACTIVITY[activity.kind] or ('running ' .. activity.tool)
  return 'working: ' .. doing, 'live'
end

---@param task offload.TaskView
---@return string, offload.Level
local function said(task)
  local turn = task.turns[#task.turns]
  local landing = task.landings[#task.landings]
  if task.phase == 'working' then
    return working(task)
  elseif task.phase == 'queued' and task.place then
    return task.place == 1 and 'queued, next' or ('queued, place %d'):format(task.place), 'live'
  elseif not M.rests(task) then
    return task.phase, 'live'
  elseif landing and landing.turn_id == turn.turn_id then
    return 'applied', 'quiet'
  elseif task.phase == 'cancelled' then
    return 'cancelled', 'quiet'
  elseif turn.failure then
    return ('%s: %s'):format(task.phase, turn.failure.message), 'failed'
  elseif turn.needs_review ~= '' then
    return 'needs review: ' .. turn.needs_review, 'waiting'
  end
  return ('%s: %s'):format(task.phase, changed(turn.changes)), 'ready'
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
  return one_line(text), level
end

--- What stands at the end of the block's first line.
---@param task offload.TaskView
---@return string text
---@return offload.Level level
function M.mark(task)
  local text, level = M.of(task)
  return ('◀ %s %s'):format(task.recipe == 'instruction' and 'task' or task.recipe, text), level
end

return M
