--- Draws each task's status at the end of its block's first line. A mark is an extmark over the block, one per task: it
--- moves with the text, which line numbers in messages do not. Asks the server nothing.

local status = require('offload.status')
local tasks = require('offload.tasks')

local M = {
  namespace = vim.api.nvim_create_namespace('offload'),
}

local HIGHLIGHTS = {
  live = 'OffloadLive',
  waiting = 'OffloadWaiting',
  ready = 'OffloadReady',
  failed = 'OffloadFailed',
  quiet = 'OffloadQuiet',
}

---@type table<string, { buffer: integer, id: integer }>
local placed = {}

---@param buffer integer
---@param id integer
---@return integer[]? position first row, column and, if the mark spans lines, its last row; 0-based
local function position(buffer, id)
  local found = vim.api.nvim_buf_get_extmark_by_id(buffer, M.namespace, id, { details = true })
  if not found[1] then
    return nil
  end
  return { found[1], found[2], found[3].end_row or found[1] }
end

--- The loaded buffer that shows the file at `path`; links on the way to it make no difference.
---@param path string
---@return integer?
local function buffer_of(path)
  local real = vim.uv.fs_realpath(path)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_is_loaded(buffer) and vim.api.nvim_buf_get_name(buffer) or ''
    if name == path or (real and name ~= '' and vim.uv.fs_realpath(name) == real) then
      return buffer
    end
  end
end

--- Puts down the mark of a task; without a text it only keeps the place.
---@param buffer integer
---@param id integer?
---@param at integer[] a position
---@param text? string
---@param level? offload.Level
---@return integer id
local function set(buffer, id, at, text, level)
  local last_row = vim.api.nvim_buf_line_count(buffer) - 1
  return vim.api.nvim_buf_set_extmark(buffer, M.namespace, math.min(at[1], last_row), at[2], {
    id = id,
    end_row = math.min(at[3], last_row),
    end_col = 0,
    strict = false,
    virt_text = text and { { text, HIGHLIGHTS[level] } },
    virt_text_pos = text and 'eol',
  })
end

--- Says one status per line, however many tasks have their blocks there: more would push each other off the screen.
---@param buffer integer
local function refresh(buffer)
  local rows = {}
  for _, task in ipairs(tasks.open()) do
    local mark = placed[task.task_id]
    local at = mark and mark.buffer == buffer and position(buffer, mark.id)
    if at then
      rows[at[1]] = rows[at[1]] or {}
      table.insert(rows[at[1]], task)
    end
  end
  for _, here in pairs(rows) do
    for index, task in ipairs(here) do
      local id = placed[task.task_id].id
      local at = assert(position(buffer, id))
      if index == 1 then
        set(buffer, id, at, status.line(here))
      else
        set(buffer, id, at)
      end
    end
  end
end

---@param task_id string
local function erase(task_id)
  local mark = placed[task_id]
  placed[task_id] = nil
  if mark and vim.api.nvim_buf_is_valid(mark.buffer) then
    vim.api.nvim_buf_del_extmark(mark.buffer, M.namespace, mark.id)
    refresh(mark.buffer)
  end
end

--- Draws the task where its mark has moved to, or at its anchor if there is no mark yet; a closed task's mark is
--- removed.
---@param task offload.TaskView
function M.draw(task)
  local path = tasks.path(task)
  local buffer = path and not task.closed and buffer_of(path)
  if not buffer then
    erase(task.task_id)
    return
  end
  local mark = placed[task.task_id]
  if mark and mark.buffer ~= buffer then
    erase(task.task_id)
    mark = nil
  end
  local at = mark and position(buffer, mark.id) or { task.anchor.first_line - 1, 0, task.anchor.last_line - 1 }
  placed[task.task_id] = { buffer = buffer, id = set(buffer, mark and mark.id, at) }
  refresh(buffer)
end

--- Draws all known tasks again: a buffer that was read anew has lost its marks.
function M.draw_all()
  for _, task in ipairs(tasks.open()) do
    M.draw(task)
  end
end

--- Tasks whose block holds the row.
---@param buffer integer
---@param row integer 0-based
---@return offload.TaskView[]
function M.at(buffer, row)
  return tasks.open(function(task)
    local mark = placed[task.task_id]
    local at = mark and mark.buffer == buffer and position(buffer, mark.id)
    return at and at[1] <= row and row <= at[3] or false
  end)
end

--- The row at which a task's mark stands now.
---@param task_id string
---@return integer? row 0-based
function M.row(task_id)
  local mark = placed[task_id]
  local at = mark and position(mark.buffer, mark.id)
  return at and at[1]
end

--- Highlight groups that a colour scheme can set.
function M.define_highlights()
  for group, link in pairs({
    OffloadLive = 'DiagnosticInfo',
    OffloadWaiting = 'DiagnosticWarn',
    OffloadReady = 'DiagnosticOk',
    OffloadFailed = 'DiagnosticError',
    OffloadQuiet = 'Comment',
  }) do
    vim.api.nvim_set_hl(0, group, { link = link, default = true })
  end
end

return M
