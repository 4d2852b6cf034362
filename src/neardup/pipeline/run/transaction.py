"""What a run over files leaves: output files, its state for `--resume`, documents in an index.

Nothing else renames an output or commits to an index. A commit does this, in this order:

1. the decision is written beside the index (`last-update`), if the run adds to one;
2. the journal says that the outputs are being published, if the run keeps its state;
3. the outputs get their names, all of them or none;
4. the kept documents are added to the index and committed, some at a time;
5. the state is removed, the journal last.

What a kill leaves, and what the same command then does:
- before 3: no output; it goes on from the last checkpoint, or matches again;
- between 3 and 4: the outputs; they are replaced by the same ones. The decision of 1 is taken as it
  is, since the index may have documents of this run already, which would be dropped otherwise;
- within 4: some documents are in the index; how many is told by the index itself, the rest follow;
- within 5: everything; the journal is the last to go, so that the run is known to have published.
"""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING, Self

from neardup.pipeline.run.folder.facts import run_facts
from neardup.pipeline.run.folder.last_update import LastUpdate, command_of
from neardup.pipeline.run.folder.resume import Resume
from neardup.pipeline.run.folder.state import RunFolder
from neardup.pipeline.run.new_documents import NewDocuments
from neardup.pipeline.run.outputs import check_outputs, less_published, output_set

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.documents import OutputSet, ReadOptions, Source
    from neardup.pipeline.run.against import ReferenceIndex
    from neardup.pipeline.run.decision import Decision
    from neardup.pipeline.run.outputs import Outputs
    from neardup.pipeline.run.reading import Documents
    from neardup.pipeline.run.rule import Choice, Limits, Rule

__all__ = ["Transaction"]


class Transaction:
    """The outputs, the state and the index of one run; a context manager.

    Args:
        sources: The inputs.
        outputs: Where to write.
        rule: Of the run, like all that follow: what tells it from another.
        choice: Which documents are kept.
        read: Which fields are read.
        limits: What it may use.
        reference: An index that came before.

    Attributes:
        files: The output files; what is written to them appears with `commit`.
        outputs: Where to write, less what a killed run has published as a whole.
        resume: What a killed run has fingerprinted, and where this one keeps what it does; None
            where no state is kept.

    Raises:
        UsageError: If an output cannot be written, or the state is that of another run.
        DataError, FileError: If the state is damaged, or cannot be read or written.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        outputs: Outputs,
        rule: Rule,
        choice: Choice,
        read: ReadOptions,
        limits: Limits,
        reference: ReferenceIndex | None = None,
    ) -> None:
        """Lock the state and check the outputs, before anything is read."""
        self._sources, self._reference, self._whole = sources, reference, outputs
        self.resume: Resume | None = None
        self._folder: RunFolder | None = None
        self._last: LastUpdate | None = None
        self._new: NewDocuments | None = None
        with ExitStack() as stack:
            if outputs.resume is not None:
                index = None if reference is None else reference.facts
                self._folder = stack.enter_context(RunFolder(outputs.resume))
                self._folder.begin(run_facts(sources, rule, choice, read, index))
                self.resume = Resume(self._folder, rule.recipe.words)
            note = None if self._folder is None else self._folder.note_aside
            self.files: OutputSet = stack.enter_context(output_set(sources, limits, note))
            if reference is not None and reference.updates:
                paths = outputs.kept, outputs.duplicates, outputs.clusters, outputs.rejects
                command = command_of(sources, paths, rule, choice, read, reference.own_ids)
                self._last = LastUpdate(reference, command)
            may_repeat = self._last is not None and self._last.may_repeat
            is_there = self._was_publishing or may_repeat
            self.outputs = less_published(sources, outputs) if is_there else outputs
            check_outputs(sources, self.outputs, self.files)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Withdraw outputs that were not committed, and let go of the state, which stays."""
        self._stack.__exit__(*error)  # type: ignore[arg-type]  # what the interpreter gives

    @property
    def _was_publishing(self) -> bool:
        return self._folder is not None and self._folder.was_publishing

    @property
    def _is_repeated(self) -> bool:
        """Whether the index has documents that the same command added before."""
        return self._last is not None and self._last.first is not None

    @property
    def notes(self) -> list[str]:
        """What a killed run had done."""
        return [] if self.resume is None else self.resume.notes

    def earlier_decision(self, documents: Documents) -> Decision | None:
        """What the same run decided about these documents before it was killed, else None."""
        decision = None if self._last is None else self._last.decision(documents)
        if decision is None and self._folder is not None:
            decision = self._folder.decision()
        return decision

    def keep(self, decision: Decision) -> None:
        """Keep a decision with the state, so that a killed run need not match again."""
        if self._folder is not None:
            self._folder.save_decision(decision)

    def prepare(self, documents: Documents, decision: Decision) -> None:
        """Refuse now what could not be committed after writing.

        Raises:
            UsageError: If an output has appeared meanwhile, or documents of the index would be
                replaced by others.
        """
        if not self._was_publishing and not self._is_repeated:
            # Nobody has published a folder that is there: it appeared while the run went on.
            check_outputs(self._sources, self._whole, self.files)
        if self._reference is not None and self._last is not None:
            self._new = NewDocuments(
                self._reference, documents, decision, self._folder, self._last.first
            )

    def commit(self, decision: Decision, read: ReadOptions) -> None:
        """Publish the outputs and add the kept documents to the index: see the top of this file."""
        if self._last is not None and not self._is_repeated:
            # Before any output appears: no later moment would be late enough for an interrupt.
            self._last.save(decision, self._folder)
        with nullcontext() if self._folder is None else self._folder.publishing(self.files):
            self.files.commit()
        if self._new is not None:
            # After the outputs: a document in the index must be one that somebody has received.
            self._new.add(self._sources, read)
        if self._folder is not None:
            self._folder.remove()
