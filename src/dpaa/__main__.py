"""`python -m dpaa …`, which is what `torchrun -m dpaa …` starts."""

from dpaa.cli import main

if __name__ == "__main__":
    main()
