--- How Neovim starts offload's language server; `vim.lsp.config('offload', { … })` changes single fields.

local marks = require('offload.marks')
local offload = require('offload')
local tasks = require('offload.tasks')

-- `offload lsp` ends with this status when the hub went away, and Neovim starts no server again by itself.
local HUB_WENT_AWAY = 75
local RESTARTS, WITHIN_MS = 4, 3 * 60 * 1000
local restarts = {} ---@type integer[]

---@param code integer
local function start_again(code)
  local now = vim.uv.now()
  restarts = vim.tbl_filter(function(at)
    return now - at < WITHIN_MS
  end, restarts)
  if code == HUB_WENT_AWAY and #restarts < RESTARTS and vim.lsp.is_enabled('offload') then
    table.insert(restarts, now)
    vim.lsp.enable('offload', false)
    vim.lsp.enable('offload')
  end
end

---@type vim.lsp.Config
return {
  cmd = { 'offload', 'lsp' },
  filetypes = {
    'go',
    'java',
    'javascript',
    'javascriptreact',
    'lua',
    'python',
    'rust',
    'typescript',
    'typescriptreact',
  },
  root_markers = { '.git' },
  -- This client draws the marks itself, so the server sends no code lenses for them: one mark per line.
  init_options = { offload = { marks = 'client' } },
  handlers = {
    ---@param task offload.TaskView
    ['offload/taskChanged'] = function(_, task)
      offload.take(task)
    end,
    -- Neovim's own handler ends a message with a line end, so that it waits for a key.
    ---@param message lsp.ShowMessageParams
    ['window/showMessage'] = function(_, message)
      vim.notify(message.message, message.type == 1 and vim.log.levels.ERROR or vim.log.levels.INFO)
    end,
  },
  on_init = function(client)
    -- Tasks from before this editor came are not told of by themselves.
    client:request('offload/showTasks', vim.empty_dict(), function(_, result)
      for _, task in ipairs(result and result.tasks or {}) do
        if tasks.concerns(task, client.root_dir) then
          offload.take(task)
        end
      end
    end)
  end,
  on_exit = vim.schedule_wrap(start_again),
  -- A buffer that was opened or read anew has none of its marks.
  on_attach = marks.draw_all,
}
