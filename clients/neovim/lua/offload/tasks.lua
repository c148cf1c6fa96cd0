--- The tasks that the server told of, latest state each. Knows no buffers and asks the server nothing.

local M = {}

---@type table<string, offload.TaskView>
local known = {}

--- Keeps a task's state unless a later one is known already: the answer to a request can come after a notification.
---@param task offload.TaskView
---@return boolean taken
function M.put(task)
  local before = known[task.task_id]
  if before and before.revision > task.revision then
    return false
  end
  known[task.task_id] = task
  return true
end

---@param task_id string
---@return offload.TaskView?
function M.get(task_id)
  return known[task_id]
end

--- Tasks that are not closed, newest first.
---@param wanted? fun(task: offload.TaskView): boolean
---@return offload.TaskView[]
function M.open(wanted)
  local found = vim.tbl_filter(function(task)
    return not task.closed and (wanted == nil or wanted(task))
  end, vim.tbl_values(known))
  table.sort(found, function(one, other)
    return one.created_at > other.created_at
  end)
  return found
end

--- Whether the task's workspace is the folder, or one holds the other: the server tells of changes to such tasks only.
---@param task offload.TaskView
---@param folder string? nil where a file has no project
---@return boolean
function M.concerns(task, folder)
  local root = folder and (vim.uv.fs_realpath(folder) or folder) or nil
  return root == nil or (vim.fs.relpath(root, task.workspace) or vim.fs.relpath(task.workspace, root)) ~= nil
end

--- The file that a task is about.
---@param task offload.TaskView
---@return string? path absolute
function M.path(task)
  return task.anchor and vim.fs.joinpath(task.workspace, task.anchor.path) or nil
end

return M
