# Scores rows from standard input with a model: docs/guide/serving.md shows how.
FROM python:3.13-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml CMakeLists.txt README.md LICENSE ./
COPY core core
COPY bindings bindings
COPY src src
RUN pip wheel --no-cache-dir --no-deps -w /wheels .

FROM python:3.13-slim-bookworm
RUN useradd --create-home --uid 1000 linrank
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels pip install --no-cache-dir /wheels/*.whl
USER linrank
WORKDIR /home/linrank
ENTRYPOINT ["linrank"]
CMD ["predict", "-", "/models/model.json"]
