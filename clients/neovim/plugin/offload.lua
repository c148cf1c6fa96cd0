--- Defines the commands; what they do is loaded when they are used.

if vim.g.loaded_offload then
  return
end
vim.g.loaded_offload = true

local function command(name, run, attributes)
  vim.api.nvim_create_user_command(name, function(call)
    run(require('offload.commands'), call)
  end, attributes)
end

command('Offload', function(commands, call)
  local lines = call.range > 0 and { call.line1, call.line2 } or nil
  commands.start(call.args, lines)
end, {
  nargs = '+',
  range = true,
  desc = 'Delegate the block at the cursor, or the selected lines: tests, docs, or what is to be done',
  complete = function(lead)
    return vim.tbl_filter(function(word)
      return vim.startswith(word, lead)
    end, { 'docs', 'tests' })
  end,
})

command('OffloadContinue', function(commands, call)
  commands.continue(call.args)
end, { nargs = '+', desc = 'Send a follow-up to a finished task' })

command('OffloadAnswer', function(commands, call)
  commands.answer(call.args)
end, { nargs = '*', desc = 'Answer what a worker asked' })

command('OffloadReject', function(commands, call)
  commands.reject(call.args, call.bang)
end, { nargs = '*', bang = true, desc = "Reject a task's changes, with a reason; with ! the worker does them anew" })

for name, action in pairs({
  OffloadApply = { run = 'apply', desc = "Merge a task's changes into buffers and files" },
  OffloadCancel = { run = 'cancel', desc = 'Stop a task' },
  OffloadCheck = { run = 'check', desc = "Run the project's checks over a task's result" },
  OffloadClose = { run = 'close', desc = 'Close a finished task; its mark goes away' },
  OffloadDiff = { run = 'diff', desc = "Show a task's changes" },
  OffloadIntegrate = { run = 'integrate', desc = 'Make one result of several' },
  OffloadTasks = { run = 'list', desc = 'List open tasks in the quickfix window' },
  OffloadUndo = { run = 'undo', desc = 'Take back what was applied last of a task' },
}) do
  command(name, function(commands)
    commands[action.run]()
  end, { desc = action.desc })
end

require('offload.marks').define_highlights()
