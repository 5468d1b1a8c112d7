"""``python3 -m tenferro_runtime.extension new my-ops`` writes a package to begin with."""

from tenferro_runtime.extension._new_extension import main

if __name__ == "__main__":
    main()
