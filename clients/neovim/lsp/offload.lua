--- How Neovim starts offload's language server; `vim.lsp.config('offload', { … })` changes single fields.

local marks = require('offload.marks')
local offload = require('offload')
local tasks = require('offload.tasks')

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
  -- A buffer that was opened or read anew has none of its marks.
  on_attach = marks.draw_all,
}
