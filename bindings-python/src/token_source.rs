//! Where tokens come from: the user's functions, or this process's memory.

use std::sync::Arc;

use leasehold::client::{PageAsk, SharedSource, TokenSource, read_ids, write_ids};
use leasehold::error::Result as CoreResult;
use leasehold::runtime::BoxedFuture;
use leasehold::tokens::{Page, Token};
use leasehold::value::Value;
use leasehold::{Code, Error};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyList, PySet};

use crate::amount::Int;
use crate::callback::{Callback, Functions};
use crate::errors::Failure;
use crate::face::Face;
use crate::guard::guard;
use crate::process::Homebound;
use crate::value::{Arg, Plain};

/// Lists tokens by the argument of a face: a function that gives pages, an object that has one, or tokens in memory.
pub fn token_source(
    source: &Bound<'_, PyAny>,
    face: Face,
    functions: &mut Functions,
) -> Result<SharedSource, Failure> {
    if let Ok(memory) = source.cast::<TokensInMemory>() {
        return Ok(Arc::new(memory.get().core.get()?.clone()));
    }
    let py = source.py();
    let own = source.getattr_opt(intern!(py, "page"))?.filter(|it| it.is_callable());
    let spent = match own {
        Some(_) => source.getattr_opt(intern!(py, "spent"))?.filter(|it| !it.is_none()),
        None => None,
    };
    if spent.as_ref().is_some_and(|it| !it.is_callable()) {
        return Err(Error::invalid("source.spent", "must be a function").into());
    }
    let page = own
        .or_else(|| Some(source.clone()).filter(|it| it.is_callable()))
        .ok_or_else(|| Error::invalid("source", "must be a function, or have one that is called page"))?;
    let page = functions.callback(&page, face, "source")?;
    let spent = spent.map(|spent| functions.callback(&spent, face, "source.spent")).transpose()?;
    Ok(Arc::new(HostTokens { page, spent }))
}

/// Asks the user's functions.
struct HostTokens {
    page: Callback,
    spent: Option<Callback>,
}

impl TokenSource for HostTokens {
    fn page(&self, ask: PageAsk) -> BoxedFuture<'_, Result<Page, String>> {
        Box::pin(
            self.page.clone().ask(String::new(), (Plain(ask.to_value()),), |answer| read(answer, Page::read)),
        )
    }

    fn verifies(&self) -> bool {
        self.spent.is_some()
    }

    fn spent(&self, wallet: Arc<str>, ids: Vec<Arc<str>>) -> BoxedFuture<'_, Result<Vec<Arc<str>>, String>> {
        let Some(spent) = &self.spent else { return Box::pin(std::future::ready(Ok(Vec::new()))) };
        let arguments = (Plain((&*wallet).into()), Plain(write_ids(&ids)));
        Box::pin(spent.clone().ask(String::new(), arguments, |answer| read(&listed(answer)?, read_ids)))
    }
}

fn read<T>(answer: &Bound<'_, PyAny>, read: fn(&Value) -> CoreResult<T>) -> Result<T, Failure> {
    const NAME: &str = "the answer of the source";
    Ok(read(&answer.extract::<Arg>()?.named(NAME)?).map_err(|error| error.within(NAME))?)
}

/// Of a set its members.
fn listed<'py>(answer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match answer.is_instance_of::<PySet>() || answer.is_instance_of::<PyFrozenSet>() {
        true => answer.py().get_type::<PyList>().call1((answer,)),
        false => Ok(answer.clone()),
    }
}

/// Tokens in this process's memory, as a source.
#[pyclass(frozen, module = "leasehold")]
pub struct TokensInMemory {
    core: Homebound<leasehold::client::TokensInMemory>,
}

#[pymethods]
impl TokensInMemory {
    #[new]
    fn new() -> PyResult<Self> {
        guard(|| {
            let core = leasehold::client::TokensInMemory::default();
            Ok(Self { core: Homebound::new(core, Code::InvalidArgument, "source") })
        })
    }

    /// Adds a token; one of the same id is replaced.
    fn add(&self, wallet: Arg, currency: Arg, token: Arg) -> PyResult<()> {
        guard(|| {
            let (wallet, currency) = (wallet.text("wallet")?, currency.text("currency")?);
            let token = Token::read(&token.named("token")?).map_err(|error| error.within("token"))?;
            self.core.get().map(|core| core.add(&wallet, &currency, token))
        })
    }

    /// A token is spent, of whatever currency it is.
    fn spend(&self, wallet: Arg, id: Arg) -> PyResult<()> {
        guard(|| {
            let (wallet, id) = (wallet.text("wallet")?, id.text("id")?);
            self.core.get().map(|core| core.spend(&wallet, &id))
        })
    }

    /// What a wallet has of a currency.
    fn sum(&self, py: Python<'_>, wallet: Arg, currency: Arg) -> PyResult<Int> {
        guard(|| {
            let (wallet, currency) = (wallet.text("wallet")?, currency.text("currency")?);
            let core = self.core.get()?;
            Ok(Int(py.detach(|| core.sum(&wallet, &currency))))
        })
    }
}
