"""OpenCode 1.18 as a worker: its server is started or attached to, and driven through HTTP and server-sent events.

A turn's prompt is sent once, under a message id of ours; events are hints, and what the server says when it is asked is the
truth. The worker's shell sees the server's environment, password included, so OpenCode never decides what is granted: offload
answers each request once and never "always".
"""
