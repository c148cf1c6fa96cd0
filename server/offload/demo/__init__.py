"""`offload demo`: five tasks in parallel on a sample project, with a scripted language model that needs no key and no network."""
