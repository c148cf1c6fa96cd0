"""The edge for editors: the Language Server Protocol on one stream per editor. Only here pygls and lsprotocol are known."""
