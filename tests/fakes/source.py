"""A `Source` that knows blocks by indentation alone: enough for tests of core, which are not about parsing."""

import re

from offload.domain.anchor import Block

DEFINITION = re.compile(r"^( *)(?:class|def) (\w+)")


class IndentedSource:
    def language(self, path):
        return "python" if path.endswith(".py") else ""

    async def blocks(self, path, text):
        blocks, open_names = [], []
        lines = text.splitlines()
        for number, line in enumerate(lines):
            match = DEFINITION.match(line)
            if match:
                depth = len(match[1])
                open_names = [(indent, name) for indent, name in open_names if indent < depth] + [(depth, match[2])]
                inside = [
                    index
                    for index in range(number + 1, len(lines))
                    if all(
                        not other.strip() or len(other) - len(other.lstrip()) > depth
                        for other in lines[number + 1 : index + 1]
                    )
                ]
                symbol = ".".join(name for _, name in open_names)
                blocks.append(Block(symbol, "function", number, max([number, *inside])))
        return blocks

    async def block_at(self, path, text, line, column):
        holding = [block for block in await self.blocks(path, text) if block.start_line <= line <= block.end_line]
        return holding[-1] if holding else None
