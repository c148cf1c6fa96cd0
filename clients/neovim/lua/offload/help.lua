--- Makes `:help offload` work where no plugin manager does: on 'runtimepath' alone a help file has no tags.

local M = {}

--- Writes the tags if they are missing or older than the text. A folder that cannot be written to stays without.
function M.index()
  local text = vim.api.nvim_get_runtime_file('doc/offload.txt', false)[1]
  if not text then
    return
  end
  local folder = vim.fs.dirname(text)
  if vim.fn.getftime(vim.fs.joinpath(folder, 'tags')) < vim.fn.getftime(text) then
    pcall(vim.cmd.helptags, vim.fn.fnameescape(folder))
  end
end

return M
