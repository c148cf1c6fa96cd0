--- What each `:Offload…` command does: choose a task or a block, ask the server once, show the answer.

local client = require('offload.client')
local marks = require('offload.marks')
local status = require('offload.status')
local tasks = require('offload.tasks')

local M = {}

---@param task offload.TaskView
---@return string
local function described(task)
  local warnings = vim.tbl_map(function(warning)
    return ' — warning: ' .. warning
  end, task.warnings or {})
  return ('%s (%s)%s'):format(task.title, (status.of(task)), table.concat(warnings))
end

--- Hands one task over: the only fitting one at the cursor without a question, else the one that is picked from a list.
---@param nothing string what to say if no task fits
---@param wanted fun(task: offload.TaskView): boolean
---@param chosen fun(task: offload.TaskView, buffer: integer)
local function choose(nothing, wanted, chosen)
  local buffer = vim.api.nvim_get_current_buf()
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local here = vim.tbl_filter(wanted, marks.at(buffer, row))
  if #here == 1 then
    chosen(here[1], buffer)
    return
  end
  local fitting = #here > 0 and here or tasks.open(wanted)
  if #fitting == 0 then
    client.say(nothing, vim.log.levels.WARN)
    return
  end
  vim.ui.select(fitting, { prompt = 'Which task?', format_item = described }, function(task)
    if task then
      chosen(task, buffer)
    end
  end)
end

--- What `:Offload WORDS` means: the name of a recipe alone, else what is to be done.
---@param words string
---@return { recipe: string, brief: string }
local function asked(words)
  if words == 'tests' or words == 'docs' then
    return { recipe = words, brief = '' }
  end
  return { recipe = 'instruction', brief = words }
end

--- Delegates the lines given, else the block at the cursor as the server's own code action names it.
---@param words string
---@param lines? [integer, integer] 1-based, both included
function M.start(words, lines)
  local buffer = vim.api.nvim_get_current_buf()
  local function start(place)
    client.request('offload/startTask', vim.tbl_extend('force', place, asked(words)), buffer)
  end
  if lines then
    start({ file = vim.api.nvim_buf_get_name(buffer), lines = ('%d-%d'):format(lines[1], lines[2]) })
    return
  end
  local language_client = client.find(buffer)
  local params = vim.lsp.util.make_range_params(0, language_client and language_client.offset_encoding or 'utf-16')
  params.context = { diagnostics = {} }
  client.request('textDocument/codeAction', params, buffer, function(actions)
    for _, action in ipairs(actions or {}) do
      if action.command and action.command.command == 'offload.start' then
        start(action.command.arguments[1])
        return
      end
    end
    client.say('no block at the cursor; select the lines to delegate', vim.log.levels.WARN)
  end)
end

---@param task offload.TaskView
---@return boolean
local function is_live(task)
  return not status.rests(task)
end

--- Each turn's change set holds all since the start, so the newest one counts, though a later turn may have ended
--- without.
---@param task offload.TaskView
---@return boolean
local function has_changes(task)
  local newest
  for _, turn in ipairs(task.turns) do
    newest = turn.changes or newest
  end
  return status.rests(task) and newest ~= nil and #newest.files > 0
end

---@param task offload.TaskView
---@return boolean
local function was_applied(task)
  return status.rests(task)
    and vim.iter(task.landings):any(function(landing)
      return landing.undone_at == nil
    end)
end

---@param task offload.TaskView
---@return boolean
local function has_asks(task)
  return #task.asks > 0
end

function M.cancel()
  choose('no task runs', is_live, function(task, buffer)
    client.request('offload/cancelTask', { task_id = task.task_id }, buffer)
  end)
end

function M.close()
  choose('no finished task is open', status.rests, function(task, buffer)
    client.request('offload/closeTask', { task_id = task.task_id }, buffer)
  end)
end

---@param brief string
function M.continue(brief)
  choose('no finished task is open', status.rests, function(task, buffer)
    client.request('offload/continueTask', { task_id = task.task_id, brief = brief }, buffer)
  end)
end

--- Answers a worker's oldest open ask, with the words given or with what is picked.
---@param words string a choice, with a message after it if there is something to say to the worker; or ''
function M.answer(words)
  choose('no worker asks anything', has_asks, function(task, buffer)
    local ask = task.asks[1]
    ---@param choice string
    ---@param message? string
    local function reply(choice, message)
      local params = { task_id = task.task_id, ask_id = ask.ask_id, choice = choice, message = message or '' }
      client.request('offload/answerTask', params, buffer)
    end
    if words ~= '' then
      local first, rest = words:match('^(%S+)%s*(.*)$')
      if vim.list_contains(ask.choices, first) then
        reply(first, rest)
      else
        reply(words)
      end
      return
    end
    local prompt = ('%s: %s'):format(ask.subject, ask.detail)
    if #ask.choices > 0 then
      vim.ui.select(ask.choices, { prompt = prompt }, function(choice)
        if choice then
          reply(choice)
        end
      end)
      return
    end
    vim.ui.input({ prompt = prompt .. ' ' }, function(text)
      if text and text ~= '' then
        reply(text)
      end
    end)
  end)
end

--- Buffers are changed by the server's edits; files that were changed on disk are read anew.
local function read_anew()
  vim.cmd.checktime()
end

function M.apply()
  choose('no task has changes to apply', has_changes, function(task, buffer)
    client.command('offload.apply', { task_id = task.task_id }, buffer, read_anew)
  end)
end

function M.undo()
  choose('no apply can be undone', was_applied, function(task, buffer)
    client.command('offload.undo', { task_id = task.task_id }, buffer, read_anew)
  end)
end

--- Rejects what is not applied of a task's changes.
---@param reason string '' to be asked for it
---@param send_back boolean whether the worker is to do it anew
function M.reject(reason, send_back)
  choose('no task has changes to reject', has_changes, function(task, buffer)
    ---@param why string?
    local function reject(why)
      if why then
        local argument = { task_id = task.task_id, reason = why, send_back = send_back }
        client.command('offload.reject', argument, buffer)
      end
    end
    if reason ~= '' then
      reject(reason)
    else
      vim.ui.input({ prompt = 'Why? ' }, reject)
    end
  end)
end

function M.check()
  choose('no task has changes to check', has_changes, function(task, buffer)
    client.command('offload.check', { task_id = task.task_id }, buffer)
  end)
end

--- Makes one result of all those in the workspace of the newest task that has changes.
function M.integrate()
  local fitting = tasks.open(has_changes)
  local together = vim.tbl_filter(function(task)
    return task.workspace == fitting[1].workspace and not task.integration
  end, fitting)
  if #together < 2 then
    client.say('there are not two results to integrate', vim.log.levels.WARN)
    return
  end
  local ids = vim.tbl_map(function(task)
    return task.task_id
  end, together)
  client.command('offload.integrate', { task_ids = ids }, vim.api.nvim_get_current_buf())
end

--- Shows a task's changes as a patch in a window of its own.
function M.diff()
  choose('no task has changes to show', has_changes, function(task, buffer)
    client.request('offload/getChanges', { task_id = task.task_id }, buffer, function(result)
      vim.cmd('botright new')
      local shown = vim.api.nvim_get_current_buf()
      vim.bo[shown].buftype = 'nofile'
      vim.bo[shown].bufhidden = 'wipe'
      vim.bo[shown].swapfile = false
      vim.api.nvim_buf_set_lines(shown, 0, -1, false, vim.split(result.patch, '\n', { plain = true, trimempty = true }))
      vim.bo[shown].filetype = 'diff'
      vim.bo[shown].modifiable = false
    end)
  end)
end

--- Lists all open tasks in the quickfix window, each at its block.
function M.list()
  local items = vim.tbl_map(function(task)
    local row = marks.row(task.task_id)
    return {
      filename = tasks.path(task),
      lnum = row and row + 1 or (task.anchor and task.anchor.first_line) or nil,
      text = described(task),
    }
  end, tasks.open())
  if #items == 0 then
    client.say('no task is open')
    return
  end
  vim.fn.setqflist({}, ' ', { title = 'offload tasks', items = items })
  vim.cmd('botright copen')
end

return M
