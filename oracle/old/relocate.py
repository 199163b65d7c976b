"""Makes a module that today's assembler made one that kernels before 4.16 load: calls through the linker's table
(R_X86_64_PLT32) become plain relative ones (R_X86_64_PC32), which the kernel's own linker treats alike."""

import struct
import sys

PC32, PLT32 = 2, 4
SHT_RELA = 4


def main(path):
    with open(path, "rb") as file:
        module = bytearray(file.read())
    sections = struct.unpack_from("<Q", module, 40)[0]
    for section in range(struct.unpack_from("<H", module, 60)[0]):
        at = sections + 64 * section
        if struct.unpack_from("<I", module, at + 4)[0] != SHT_RELA:
            continue
        start, size = struct.unpack_from("<QQ", module, at + 24)
        for entry in range(start, start + size, 24):
            info = struct.unpack_from("<Q", module, entry + 8)[0]
            if info & 0xFFFFFFFF == PLT32:
                struct.pack_into("<Q", module, entry + 8, info >> 32 << 32 | PC32)
    with open(path, "wb") as file:
        file.write(module)


if __name__ == "__main__":
    main(sys.argv[1])
