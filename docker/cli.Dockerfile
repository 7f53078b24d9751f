# The command line in a container, with a torch that needs no GPU packages:
#   docker build -f docker/cli.Dockerfile -t dpaa .
#   docker run --rm -v "$PWD:/data" dpaa audit clicks.csv
FROM python:3.11-slim AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
ENV PYTHONUNBUFFERED=1 OMP_WAIT_POLICY=passive
COPY constraints.txt /tmp/
RUN grep '^torch==' /tmp/constraints.txt > /tmp/torch.txt \
    && pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu -r /tmp/torch.txt
COPY --from=wheel /wheels /wheels
RUN pip install --no-cache-dir -c /tmp/constraints.txt "$(ls /wheels/dpaa-*.whl)[report,tune]" \
    && rm -r /wheels \
    && useradd --create-home dpaa
USER dpaa
WORKDIR /data
ENTRYPOINT ["dpaa"]
CMD ["--help"]
