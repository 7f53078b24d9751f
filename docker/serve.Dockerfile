# The service and its live page.  Runs are mounted at /runs, their parent folder rather than one run, so that a run that is
# replaced in one rename is seen by POST /reload; the token comes from the environment:
#   docker build -f docker/serve.Dockerfile -t dpaa-serve .
#   docker run --rm -p 127.0.0.1:8000:8000 -v /srv/runs:/runs:ro -e DPAA_SERVE_TOKEN dpaa-serve /runs/current --workers 2
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
RUN pip install --no-cache-dir -c /tmp/constraints.txt "$(ls /wheels/dpaa-*.whl)[serve,index]" \
    && rm -r /wheels \
    && useradd --system --create-home dpaa
USER dpaa
EXPOSE 8000
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health')"]
ENTRYPOINT ["dpaa", "serve", "--host", "0.0.0.0"]
CMD ["/runs/current"]
